//! Asking for the usage in a client's place: where a body says so with the fewest bytes changed.

use super::Fields;
use super::splice::Splice;
use crate::api::Api;
use crate::json::{Malformed, Value};

/// The change by which a streaming request of chat completions or completions asks for a last event with the usage
/// (`stream_options.include_usage`), as OpenAI's API defines it. `None` where it asks already, streams nothing, speaks
/// another API (they tell the usage anyway), or has options that are none: the engine is to refuse those.
///
/// # Errors
///
/// As [`describe`](super::describe).
pub fn include_usage(body: &[u8], api: Api) -> Result<Option<Splice>, Malformed> {
    if !matches!(api, Api::ChatCompletions | Api::Completions) {
        return Ok(None);
    }
    let fields = Fields::find(body)?;
    if !fields.stream.is_some_and(Value::is_true) {
        return Ok(None);
    }
    let Some(options) = fields.stream_options else {
        return Ok(Some(Splice::first_member(body, r#""stream_options":{"include_usage":true}"#)));
    };
    let range = options.range();
    if options.bytes() == b"null" {
        return Ok(Some(Splice { replaced: range, by: r#"{"include_usage":true}"#.into() }));
    }
    if !options.bytes().starts_with(b"{") {
        return Ok(None);
    }
    Ok(match options.member(b"include_usage")? {
        Some(asked) if asked.is_true() => None,
        Some(asked) => Some(Splice { replaced: asked.range(), by: "true".into() }),
        None => {
            let at = range.start + 1;
            let by = if options.cursor().at_filled_container() {
                r#""include_usage":true,"#
            } else {
                r#""include_usage":true"#
            };
            Some(Splice { replaced: at..at, by: by.into() })
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value as Document, json};

    use super::*;
    use crate::request::describe;

    fn spliced(body: &str) -> String {
        let splice = include_usage(body.as_bytes(), Api::ChatCompletions).expect("valid");
        splice.map_or(body.to_owned(), |splice| String::from_utf8(splice.apply(body.as_bytes())).expect("valid"))
    }

    #[test]
    fn only_the_place_of_the_option_changes() {
        let cases = [
            (r#"{"stream":true}"#, r#"{"stream_options":{"include_usage":true},"stream":true}"#),
            (
                "\u{feff} { \"a\" : 1e5,\"stream\": true }",
                "\u{feff} {\"stream_options\":{\"include_usage\":true}, \"a\" : 1e5,\"stream\": true }",
            ),
            (r#"{"stream":true,"stream_options":null}"#, r#"{"stream":true,"stream_options":{"include_usage":true}}"#),
            (r#"{"stream":true,"stream_options":{ }}"#, r#"{"stream":true,"stream_options":{"include_usage":true }}"#),
            (
                r#"{"stream_options":{"x": 1},"stream":true}"#,
                r#"{"stream_options":{"include_usage":true,"x": 1},"stream":true}"#,
            ),
            (
                r#"{"stream_options":{"include_usage": false},"stream":true}"#,
                r#"{"stream_options":{"include_usage": true},"stream":true}"#,
            ),
            // Of a key that stands twice, the last counts.
            (
                r#"{"stream_options":{"include_usage":true},"stream":true,"stream_options":null}"#,
                r#"{"stream_options":{"include_usage":true},"stream":true,"stream_options":{"include_usage":true}}"#,
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(spliced(body), expected);
        }
    }

    #[test]
    fn who_asks_already_or_cannot_ask_is_left_alone() {
        for body in [
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            r#"{"stream":false}"#,
            r#"{"stream":"true"}"#,
            r#"{"messages":[{"stream":true}]}"#,
            r#"{"stream":true,"stream_options":[]}"#,
            r#"{"stream":true,"stream_options":"x"}"#,
        ] {
            assert_eq!(spliced(body), body);
        }
        for api in [Api::Responses, Api::Messages, Api::Embeddings, Api::Invocations] {
            assert_eq!(include_usage(br#"{"stream":true}"#, api), Ok(None), "{api:?}");
        }
        assert!(include_usage(b"{", Api::Completions).is_err());
    }

    proptest! {
        #[test]
        fn the_rest_of_the_body_means_what_it_meant(
            text: String,
            options in prop_oneof![
                Just(json!(null)), Just(json!({})), Just(json!({"include_usage": false})), Just(json!({"x": [1]})),
            ],
            before: bool,
        ) {
            let mut body = json!({"messages": [{"content": text}], "stream": true}).to_string();
            let option = format!(r#""stream_options":{options}"#);
            let at = if before { 1 } else { body.len() - 1 };
            body.insert_str(at, &if before { option + "," } else { format!(",{option}") });
            let changed = spliced(&body);
            let described = describe(changed.as_bytes(), Api::ChatCompletions, &mut |_: &str| true).expect("valid");
            prop_assert!(described.include_usage && described.stream);
            let mut expected: Document = serde_json::from_str(&body).expect("valid");
            if !expected["stream_options"].is_object() {
                expected["stream_options"] = json!({});
            }
            expected["stream_options"]["include_usage"] = json!(true);
            prop_assert_eq!(serde_json::from_str::<Document>(&changed).expect("valid"), expected);
        }
    }
}
