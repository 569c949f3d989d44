//! Usage in the forms of every API.

use super::*;

fn usage(prompt: impl Into<Option<u64>>, cached: impl Into<Option<u64>>, completion: impl Into<Option<u64>>) -> Usage {
    Usage { prompt_tokens: prompt.into(), cached_tokens: cached.into(), completion_tokens: completion.into() }
}

#[test]
fn every_api_reports_in_its_own_form() {
    let cases = [
        // Chat and completions, vLLM with and without details.
        (
            r#"{"choices":[],"usage":{"prompt_tokens":2031,"total_tokens":2039,"completion_tokens":8,
                "prompt_tokens_details":{"cached_tokens":2016,"created_cache_tokens":0}}}"#,
            usage(2031, 2016, 8),
        ),
        (r#"{"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":null}}"#, usage(10, None, 2)),
        (r#"{"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":null}}}"#, usage(10, None, None)),
        (r#"{"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":0}}}"#, usage(10, 0, None)),
        // Further members behind it; the same words in a text, and as a name.
        (
            r#"{"choices":[{"text":"\"usage\": {"}],"usage": {"prompt_tokens":10} , "prompt_logprobs":null }"#,
            usage(10, None, None),
        ),
        (r#"{"kind":"usage","usage":{"prompt_tokens":10}}"#, usage(10, None, None)),
        (r#"{"kind":"usage","of":{"usage":{"prompt_tokens":9}},"usage":{"prompt_tokens":10}}"#, usage(10, None, None)),
        // Embeddings.
        (r#"{"data":[],"usage":{"prompt_tokens":10,"total_tokens":10}}"#, usage(10, None, None)),
        // Responses, whole and as an event.
        (
            r#"{"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":64},"output_tokens":7}}"#,
            usage(100, 64, 7),
        ),
        (
            r#"{"type":"response.completed","response":{"usage":{"input_tokens":100,"output_tokens":7}}}"#,
            usage(100, None, 7),
        ),
        // Anthropic: what was cached is not in `input_tokens`.
        (
            r#"{"type":"message","usage":{"input_tokens":4,"cache_creation_input_tokens":30,
                "cache_read_input_tokens":960,"output_tokens":7}}"#,
            usage(994, 960, 7),
        ),
        (r#"{"type":"message","usage":{"input_tokens":20,"output_tokens":7}}"#, usage(20, None, 7)),
    ];
    for (json, expected) in cases {
        assert_eq!(Usage::from_json(json.as_bytes()), Some(expected), "{json}");
    }
}

#[test]
fn no_usage_is_unknown() {
    let cases = [
        "",
        "[]",
        "{}",
        "not JSON",
        r#"{"usage":null}"#,
        r#"{"usage":{}}"#,
        r#"{"usage":{"prompt_tokens":"10"}}"#,
        r#"{"usage":{"prompt_tokens":-1,"completion_tokens":1.5}}"#,
        r#"{"choices":[{"usage":{"prompt_tokens":1}}]}"#,
        r#"{"timings":{"usage":{"prompt_tokens":1}}}"#,
        r#"{"kind":"usage"}"#,
        r#"{"message":{"message":{"usage":{"prompt_tokens":1}}}}"#,
    ];
    for json in cases {
        assert_eq!(Usage::from_json(json.as_bytes()), None, "{json}");
    }
}

#[test]
fn anthropics_two_reports_are_merged() {
    let mut tally = Tally::default();
    tally.read_json(
        br#"{"type":"message_start","message":{"usage":{"input_tokens":4,"cache_read_input_tokens":96,"output_tokens":1}}}"#,
    );
    assert_eq!(tally.usage(), Some(usage(100, 96, 1)));
    tally.read_json(br#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}"#);
    assert_eq!(tally.usage(), Some(usage(100, 96, 15)));
}

#[test]
fn the_later_report_replaces_the_earlier_field_by_field() {
    let mut tally = Tally::default();
    // vLLM begins with zeros where it does not know yet.
    tally.read_json(br#"{"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":0}}}"#);
    tally.read_json(br#"{"type":"message_delta","usage":{"input_tokens":50,"output_tokens":9}}"#);
    assert_eq!(tally.usage(), Some(usage(50, None, 9)));
    tally.read_json(br#"{"usage":{"output_tokens":null}}"#);
    assert_eq!(tally.usage(), Some(usage(50, None, 9)));
}

#[test]
fn sums_do_not_overflow() {
    let json = br#"{"usage":{"input_tokens":18446744073709551615,"cache_read_input_tokens":1}}"#;
    assert_eq!(Usage::from_json(json), Some(usage(u64::MAX, 1, None)));
}
