//! What a logged response tells: how many tokens there were, and how many the cache had.

use isotherm_wire::usage::Usage;

/// The usage in a response's body, or in the events of a stream.
pub(super) fn usage(body: &[u8]) -> Option<Usage> {
    if body.trim_ascii_start().starts_with(b"{") {
        return Usage::from_json(body);
    }
    let mut known: Option<Usage> = None;
    for line in body.split(|byte| *byte == b'\n') {
        let Some(event) = line.strip_prefix(b"data:") else { continue };
        if let Some(usage) = Usage::from_json(event) {
            let before = known.unwrap_or_default();
            known = Some(Usage {
                prompt_tokens: usage.prompt_tokens.or(before.prompt_tokens),
                cached_tokens: usage.cached_tokens.or(before.cached_tokens),
                completion_tokens: usage.completion_tokens.or(before.completion_tokens),
            });
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_found_in_bodies_and_in_streams() {
        let body =
            br#"{"usage":{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}}"#;
        let expected = Usage { prompt_tokens: Some(10), cached_tokens: Some(8), completion_tokens: Some(3) };
        assert_eq!(usage(body), Some(expected));
        let mut stream = b"data: {\"choices\":[]}\n\ndata: ".to_vec();
        stream.extend_from_slice(body);
        stream.extend_from_slice(b"\n\ndata: [DONE]\n\n");
        assert_eq!(usage(&stream), Some(expected));
        assert_eq!(usage(b"plain text"), None);
    }
}
