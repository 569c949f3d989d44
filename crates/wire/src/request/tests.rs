//! Every API's forms, and bodies that are none.

use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value as Document, json};

use super::*;

fn text_of(api: Api, body: &[u8]) -> String {
    let mut text = String::new();
    let mut sink = |piece: &str| {
        assert!(!piece.is_empty());
        text.push_str(piece);
        true
    };
    describe(body, api, &mut sink).expect("a JSON object");
    text
}

fn described(api: Api, body: &str) -> Described<'_> {
    describe(body.as_bytes(), api, &mut |_: &str| true).expect("a JSON object")
}

#[test]
fn every_api_has_its_text_in_logical_order() {
    use Api::*;
    let cases = [
        (ChatCompletions, r#"{"messages":[{"role":"system","content":"a"},{"role":"user","content":"b"}]}"#, "ab"),
        // Key order inside and outside of messages carries no meaning.
        (ChatCompletions, r#"{"messages":[{"content":"a","role":"system"}],"model":"m"}"#, "a"),
        (
            ChatCompletions,
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},
                {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"text":"b","type":"text"},"c"]}]}"#,
            "abc",
        ),
        // Of tools and tool calls there is no text, of a tool's result there is.
        (
            ChatCompletions,
            r#"{"tools":[{"type":"function","function":{"name":"f","description":"text"}}],"messages":[
                {"role":"user","content":"a"},
                {"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},
                {"role":"tool","tool_call_id":"1","content":"b"}]}"#,
            "ab",
        ),
        // What the engine does not read there does not count.
        (ChatCompletions, r#"{"prompt":"x","input":"y","system":"z","messages":[{"content":"a"}]}"#, "a"),
        (Completions, r#"{"prompt":"a"}"#, "a"),
        (Completions, r#"{"prompt":["a","b"]}"#, "a"),
        (Completions, r#"{"prompt":[1, 22,333]}"#, "1 22 333"),
        (Completions, r#"{"prompt":[[1,2],[3]]}"#, "1 2"),
        (Completions, r#"{"prompt":[]}"#, ""),
        (Completions, r#"{"prompt":[[]]}"#, ""),
        (Responses, r#"{"input":"b","instructions":"a"}"#, "ab"),
        (
            Responses,
            r#"{"input":[{"role":"user","content":[{"type":"input_text","text":"b"}]},
                {"type":"message","role":"assistant","content":[{"type":"output_text","text":"c"}]},
                {"type":"function_call","name":"f","arguments":"{}","call_id":"1"},
                {"type":"function_call_output","call_id":"1","output":"d"},
                {"type":"function_call_output","call_id":"2","output":[{"type":"input_text","text":"e"}]},
                {"role":"user","content":"f"}],"instructions":"a"}"#,
            "abcdef",
        ),
        (Embeddings, r#"{"input":"a"}"#, "a"),
        (Embeddings, r#"{"input":["a","b"]}"#, "a"),
        (Embeddings, r#"{"input":[7,8]}"#, "7 8"),
        (Embeddings, r#"{"input":[{"content":[{"type":"text","text":"a"}]},{"content":"b"}]}"#, "a"),
        (Embeddings, r#"{"messages":[{"role":"user","content":"a"}]}"#, "a"),
        (Messages, r#"{"messages":[{"role":"user","content":"b"}],"system":"a"}"#, "ab"),
        (
            Messages,
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"c"}]},
                {"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"y"},
                    {"type":"tool_use","id":"1","name":"f","input":{"text":"z"}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"d"},
                    {"type":"tool_result","tool_use_id":"2","content":[{"type":"text","text":"e"}]}]}],
             "system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}]}"#,
            "abcde",
        ),
        (CountTokens, r#"{"system":"a","messages":[{"role":"user","content":"b"}]}"#, "ab"),
        (Rerank, r#"{"documents":["x","y"],"query":"a"}"#, "a"),
        (Rerank, r#"{"query":{"content":[{"type":"text","text":"a"}]}}"#, "a"),
        (Score, r#"{"text_1":"a","text_2":["x"]}"#, "a"),
        (Score, r#"{"text_1":["a","b"],"text_2":["x","y"]}"#, "a"),
        (Score, r#"{"queries":"a","documents":["x"]}"#, "a"),
        (Score, r#"{"data_1":"a","data_2":"x"}"#, "a"),
        (Invocations, r#"{"inputs":"x","messages":[{"content":"y"}],"prompt":"z"}"#, ""),
    ];
    for (api, body, expected) in cases {
        assert_eq!(text_of(api, body.as_bytes()), expected, "{api:?} {body}");
    }
}

/// A text in which `|` stands for each breakpoint and `<` for each turn of the model.
#[derive(Default)]
struct Marked(String);

impl TextSink for Marked {
    fn text(&mut self, piece: &str) -> bool {
        self.0.push_str(piece);
        true
    }

    fn breakpoint(&mut self) {
        self.0.push('|');
    }

    fn answer(&mut self) {
        self.0.push('<');
    }
}

#[test]
fn breakpoints_are_told_where_clients_set_them() {
    use Api::{ChatCompletions, Messages, Responses};
    let cases = [
        (
            Messages,
            r#"{"messages":[{"role":"user","content":[{"cache_control":{"type":"ephemeral"},"type":"text","text":"c"},
                    {"type":"text","text":"d"}]},
                {"role":"assistant","content":"e"},
                {"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"f"}],
                    "cache_control":{"type":"ephemeral","ttl":"1h"}}]}],
             "tools":[{"name":"t","cache_control":{"type":"ephemeral"}}],
             "system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},
                {"type":"text","text":"b","cache_control":null}]}"#,
            "a|bc|d<ef|",
        ),
        (
            ChatCompletions,
            r#"{"messages":[{"role":"system","content":"a","cache_control":{"type":"ephemeral"}},
                {"role":"user","content":[{"type":"text","text":"b","prompt_cache_breakpoint":{"mode":"explicit"}},
                    {"type":"text","text":"c"}]}],"prompt_cache_options":{"mode":"explicit"}}"#,
            "a|b|c",
        ),
        (
            Responses,
            r#"{"instructions":"a","input":[{"role":"user","content":[
                {"type":"input_text","text":"b","prompt_cache_breakpoint":{"mode":"explicit"}},
                {"type":"input_image","image_url":"x","prompt_cache_breakpoint":{"mode":"explicit"}}]}]}"#,
            "ab||",
        ),
    ];
    for (api, body, expected) in cases {
        let mut marked = Marked::default();
        describe(body.as_bytes(), api, &mut marked).unwrap();
        assert_eq!(marked.0, expected, "{body}");
    }
}

#[test]
fn wrong_types_count_as_absent() {
    let cases = [
        (Api::ChatCompletions, r#"{"messages":"a"}"#),
        (Api::ChatCompletions, r#"{"messages":{"content":"a"}}"#),
        (Api::ChatCompletions, r#"{"messages":null}"#),
        (
            Api::ChatCompletions,
            r#"{"messages":[1,null,true,{"content":7},{"content":{"text":"a"}},[{"content":"a"}]]}"#,
        ),
        (Api::Completions, r#"{"prompt":{"a":"b"}}"#),
        (Api::Completions, r#"{"prompt":[null,"a"]}"#),
        (Api::Completions, r#"{"prompt":12}"#),
        (Api::Embeddings, r#"{"input":false}"#),
        (Api::Responses, r#"{"input":3,"instructions":{}}"#),
    ];
    for (api, body) in cases {
        assert_eq!(text_of(api, body.as_bytes()), "", "{api:?} {body}");
    }
    let body = r#"{"model":1,"stream":"true","stream_options":[],"cache_salt":{},"prompt_cache_key":null}"#;
    assert_eq!(described(Api::ChatCompletions, body), Described::default());
}

#[test]
fn fields_are_found_wherever_they_stand() {
    let body = r#"{"messages":[{"content":"a","model":"not this"}],"stream_options":{"include_usage":true},"stream":true,
        "model":"m\u00e9","prompt_cache_key":"k","cache_salt":"s","extra_key":"e","lora_path":"l","priority":-2,
        "previous_response_id":"resp_1","unknown":{"stream":false}}"#;
    let expected = Described {
        model: Some("mé".into()),
        stream: true,
        include_usage: true,
        prompt_cache_key: Some("k".into()),
        cache_salt: Some("s".into()),
        extra_key: Some("e".into()),
        adapter: Some("l".into()),
        previous_response_id: Some("resp_1".into()),
        priority: Some(-2),
    };
    assert_eq!(described(Api::ChatCompletions, body), expected);
}

#[test]
fn strings_without_escapes_are_borrowed() {
    let described = described(Api::ChatCompletions, r#"{"model":"llama"}"#);
    assert!(matches!(described.model, Some(Cow::Borrowed("llama"))));
}

#[test]
fn of_a_key_that_stands_twice_the_last_counts() {
    let body = r#"{"model":"a","messages":[{"content":"x"}],"stream":true,"model":"b","messages":[{"content":"y","content":"z"}],
        "stream":null,"\u006dodel":"c"}"#;
    assert_eq!(text_of(Api::ChatCompletions, body.as_bytes()), "z");
    let described = described(Api::ChatCompletions, body);
    assert_eq!((described.model.as_deref(), described.stream), (Some("c"), false));
    // Also when the last is of a wrong type.
    assert_eq!(text_of(Api::Completions, br#"{"prompt":"a","prompt":null}"#), "");
}

#[test]
fn keys_compare_decoded() {
    let body = r#"{"mess\u0061ges":[{"c\u006fntent":"a"}]}"#;
    assert_eq!(text_of(Api::ChatCompletions, body.as_bytes()), "a");
}

#[test]
fn text_is_decoded() {
    let body = r#"{"prompt":"l\u00ednea\n\ud83d\ude00 \ud83d \u4f60好\/"}"#;
    assert_eq!(text_of(Api::Completions, body.as_bytes()), "línea\n😀 \u{FFFD} 你好/");
    assert_eq!(text_of(Api::Completions, b"{\"prompt\":\"a\xff\xe4\xbd\xa0\"}"), "a\u{FFFD}你");
    assert_eq!(text_of(Api::Completions, "\u{feff}{\"prompt\":\"a\"}".as_bytes()), "a");
    assert_eq!(text_of(Api::Completions, br#"{"prompt":"a","temperature":NaN,"top_p":-Infinity}"#), "a");
}

#[test]
fn a_body_that_is_no_object_is_refused_with_its_place() {
    let cases = [
        ("", "invalid JSON at byte 0: expected a JSON object, found the end of the body"),
        ("[1]", "invalid JSON at byte 0: expected a JSON object, found `[`"),
        ("hello", "invalid JSON at byte 0: expected a JSON object, found `h`"),
        ("{\"model\":\"m\"", "invalid JSON at byte 12: expected `,` or `}`, found the end of the body"),
        ("{\"messages\":[{\"content\":\"a\" \"b\"}]}", "invalid JSON at byte 28: expected `,` or `}`, found `\"`"),
        ("{}{}", "invalid JSON at byte 2: expected the end of the body, found `{`"),
    ];
    for (body, message) in cases {
        let malformed = describe(body.as_bytes(), Api::ChatCompletions, &mut |_: &str| true).expect_err(body);
        assert_eq!(malformed.to_string(), message);
    }
}

#[test]
fn invocations_take_any_body() {
    for body in ["", "hello", "[1]", "{\"model\":\"m\"", "\u{0}\u{1}"] {
        assert_eq!(described(Api::Invocations, body), Described::default(), "{body}");
    }
    let described = described(Api::Invocations, r#"{"model":"m","stream":true,"inputs":"x"}"#);
    assert_eq!((described.model.as_deref(), described.stream), (Some("m"), true));
}

#[test]
fn no_more_is_decoded_than_the_sink_wants() {
    let body = json!({"messages": [{"content": "a".repeat(1 << 20)}, {"content": "b"}]}).to_string();
    let mut given = 0;
    describe(body.as_bytes(), Api::ChatCompletions, &mut |piece: &str| {
        given += piece.len();
        given < 10_000
    })
    .expect("valid");
    assert!((10_000..20_000).contains(&given), "{given}");

    let ids = json!({"prompt": vec![12_345; 100_000]}).to_string();
    let mut pieces = 0;
    describe(ids.as_bytes(), Api::Completions, &mut |_: &str| {
        pieces += 1;
        false
    })
    .expect("valid");
    assert_eq!(pieces, 1);
}

#[test]
fn a_sink_that_wants_no_more_is_not_asked_again() {
    let body = json!({"instructions": "a", "input": [{"content": "b"}, {"content": ["c", {"text": "d"}]}]}).to_string();
    for wanted in 1..=4 {
        let mut pieces = Vec::new();
        describe(body.as_bytes(), Api::Responses, &mut |piece: &str| {
            pieces.push(piece.to_owned());
            pieces.len() < wanted
        })
        .expect("valid");
        assert_eq!(pieces, ["a", "b", "c", "d"][..wanted]);
    }
}

#[test]
fn hostile_bodies_take_no_time_and_no_stack() {
    let nested = |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    let bodies = [
        format!("{{\"prompt\":\"{}\"}}", "x".repeat(10 << 20)),
        format!("{{\"prompt\":\"{}\"}}", "\\u4f60".repeat(1 << 20)),
        format!("{{\"prompt\":{}}}", nested("[", "]")),
        format!("{{\"messages\":[{{\"content\":{}}}]}}", nested("[{\"content\":", "}]").replacen("}]", "1}]", 1)),
        format!("{{\"messages\":{}", "[".repeat(100_000)),
        format!("{{{}\"a\":1}}", "\"prompt\":\"x\",".repeat(100_000)),
    ];
    for body in bodies {
        let took = || {
            let begun = Instant::now();
            for api in Api::ALL {
                let mut count = CharacterCount::default();
                let _ = describe(body.as_bytes(), api, &mut count);
            }
            begun.elapsed()
        };
        // The machine may pause within one: what it costs is the least of three.
        let least = took().min(took()).min(took());
        assert!(least < Duration::from_secs(3), "{least:?} for {}", &body[..40]);
    }
}

#[test]
fn a_body_cut_off_anywhere_is_refused() {
    let body = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"h\\u00e9你\\ud83d\\ude00\"}]}],
        \"temperature\":-1.5e-3,\"stream\":true,\"x\":[null,{}]}";
    assert_eq!(text_of(Api::ChatCompletions, body.as_bytes()), "hé你😀");
    for end in 0..body.len() {
        for api in Api::ALL {
            let result = describe(&body.as_bytes()[..end], api, &mut |_: &str| true);
            assert_eq!(result.is_ok(), api == Api::Invocations, "cut at {end}");
        }
    }
}

/// Writes a text as a JSON string, every character in one of the ways in which it can be written.
fn written(text: &str, escaped: &[bool]) -> String {
    let mut units = [0; 2];
    let mut literal = String::from("\"");
    for (character, &escape) in text.chars().zip(escaped.iter().cycle()) {
        if escape || character.is_control() || matches!(character, '"' | '\\') {
            character.encode_utf16(&mut units).iter().for_each(|unit| literal.push_str(&format!("\\u{unit:04X}")));
        } else {
            literal.push(character);
        }
    }
    literal + "\""
}

/// The first `limit` characters by way of a prefix: the bytes, how many characters, and whether the text goes on.
fn prefix_of(api: Api, body: &str, limit: usize) -> (Vec<u8>, usize, bool) {
    let mut bytes = Vec::new();
    let mut forward = |piece: &[u8]| bytes.extend_from_slice(piece);
    let mut prefix = Prefix::new(limit, &mut forward);
    describe(body.as_bytes(), api, &mut prefix).expect("valid");
    let (characters, continued) = (prefix.characters(), prefix.continued());
    (bytes, characters, continued)
}

#[test]
fn every_prefix_length_ends_between_characters() {
    let text = "Grüße, 世界! 👩‍👩‍👧‍👦 \u{1F1E8}\u{1F1ED} e\u{301} ".repeat(3);
    let body = format!("{{\"messages\":[{{\"content\":{}}}]}}", written(&text, &[false, true, false]));
    let length = text.chars().count();
    for limit in 0..length + 2 {
        let expected: String = text.chars().take(limit).collect();
        let (bytes, characters, continued) = prefix_of(Api::ChatCompletions, &body, limit);
        assert_eq!(String::from_utf8(bytes).expect("whole characters"), expected);
        assert_eq!((characters, continued), (limit.min(length), limit < length));
    }
}

#[test]
fn prefixes_of_long_texts_are_exact() {
    for text in ["abc ".repeat(20_000), "你好，世界。".repeat(5_000), "😀".repeat(9_000), "a\n".repeat(9_000)] {
        for escaped in [[false], [true]] {
            let body = format!("{{\"prompt\":{}}}", written(&text, &escaped));
            for limit in [1, 4_095, 4_096, 4_097, 8_192, 8_193] {
                let expected: String = text.chars().take(limit).collect();
                let (bytes, characters, continued) = prefix_of(Api::Completions, &body, limit);
                assert!(bytes == expected.as_bytes(), "{limit} characters of {}", &text[..4]);
                assert_eq!((characters, continued), (limit, true));
            }
        }
    }
}

#[test]
fn a_text_is_counted_whole() {
    let mut count = CharacterCount::default();
    describe(r#"{"prompt":"h\u00e9😀 你"}"#.as_bytes(), Api::Completions, &mut count).expect("valid");
    assert_eq!(count.characters(), 5);
}

/// A content in any of its forms, with the text it holds.
fn content() -> impl Strategy<Value = (Document, String)> {
    let part = ("\\PC{0,12}", any::<bool>()).prop_map(|(text, is_text)| {
        if is_text {
            (json!({"type": "text", "text": text}), text)
        } else {
            (json!({"type": "image_url", "image_url": {"url": text}}), String::new())
        }
    });
    prop_oneof![
        ".{0,40}".prop_map(|text| (json!(text), text)),
        vec(part, 0..5).prop_map(|parts| {
            let (parts, texts): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
            (json!(parts), texts.concat())
        }),
        Just((json!(null), String::new())),
    ]
}

proptest! {
    #[test]
    fn the_prefix_of_any_chat_is_its_first_characters(contents in vec(content(), 0..6), limit in 0usize..120) {
        let (contents, texts): (Vec<_>, Vec<_>) = contents.into_iter().unzip();
        let messages: Vec<_> = contents.iter().map(|content| json!({"role": "user", "content": content})).collect();
        let body = json!({"messages": messages, "model": "m", "zzz": contents}).to_string();
        let text = texts.concat();
        let length = text.chars().count();
        let expected: String = text.chars().take(limit).collect();
        let found = prefix_of(Api::ChatCompletions, &body, limit);
        prop_assert_eq!(found, (expected.into_bytes(), length.min(limit), length > limit));
    }

    #[test]
    fn the_way_a_text_is_written_does_not_matter(text: String, escaped in vec(any::<bool>(), 1..9)) {
        let body = format!("{{\"prompt\":{}}}", written(&text, &escaped));
        prop_assert_eq!(text_of(Api::Completions, body.as_bytes()), text);
    }

    #[test]
    fn any_bytes_are_described_without_a_panic(body in vec(any::<u8>(), 0..300)) {
        for api in Api::ALL {
            let _ = describe(&body, api, &mut |_: &str| true);
        }
    }

    #[test]
    fn a_damaged_body_is_described_without_a_panic(contents in vec(content(), 0..4), at: usize, byte: u8) {
        let messages: Vec<_> = contents.iter().map(|(content, _)| json!({"content": content})).collect();
        let mut body = json!({"messages": messages, "input": messages, "prompt": [1, 2], "system": "a"}).to_string().into_bytes();
        let at = at % body.len();
        body[at] = byte;
        for api in Api::ALL {
            let _ = describe(&body, api, &mut |_: &str| true);
        }
    }
}
