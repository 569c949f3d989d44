//! Bodies that pass in pieces.

use super::*;

const BODY: &str = r#"{"id": "resp_\u0031", "object": "response", "choices": [{"usage": {"prompt_tokens": 1},
    "message": {"content": "\"usage\": {\"prompt_tokens\": 2} }{ \\", "id": "x"}}], "model": "m",
    "usage": {"prompt_tokens": 12, "prompt_tokens_details": {"cached_tokens": 8}, "completion_tokens": 3}, "x": null}"#;

fn scanned<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> Scanner {
    let mut scanner = Scanner::new();
    pieces.into_iter().for_each(|piece| scanner.scan(piece));
    scanner
}

#[test]
fn finds_usage_and_id_under_every_splitting() {
    let expected = Usage { prompt_tokens: Some(12), cached_tokens: Some(8), completion_tokens: Some(3) };
    for cut in 0..=BODY.len() {
        let (head, tail) = BODY.as_bytes().split_at(cut);
        let scanner = scanned([head, tail]);
        assert_eq!((scanner.usage(), scanner.id()), (Some(expected), Some("resp_1")), "cut at {cut}");
    }
    let scanner = scanned(BODY.as_bytes().chunks(1));
    assert_eq!((scanner.usage(), scanner.id()), (Some(expected), Some("resp_1")));
}

#[test]
fn agrees_with_reading_the_whole_body() {
    assert_eq!(scanned([BODY.as_bytes()]).usage(), Usage::from_json(BODY.as_bytes()));
}

#[test]
fn finds_the_usage_behind_long_arrays() {
    let embedding = "0.0123456,".repeat(200_000);
    let body = format!(r#"{{"data":[{{"embedding":[{embedding}1]}}],"usage":{{"prompt_tokens":5,"total_tokens":5}}}}"#);
    let expected = Usage { prompt_tokens: Some(5), ..Usage::default() };
    assert_eq!(scanned(body.as_bytes().chunks(16 * 1024)).usage(), Some(expected));
}

#[test]
fn a_body_that_is_no_json_tells_nothing() {
    for body in ["", "plain text", "}}}]]\"", r#"["usage",{"prompt_tokens":1}]"#, "{\"usage\":{\"prompt_tokens\":1"] {
        let scanner = scanned([body.as_bytes()]);
        assert_eq!((scanner.usage(), scanner.id()), (None, None), "{body}");
    }
}
