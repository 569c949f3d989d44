//! What is given of every API's requests, and that equal beginnings and nothing else have equal bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value as Document, json};

use crate::api::Api;
use crate::request::{PromptSink, describe, render};

/// Writes marks as `<letter>` and a medium as `[…]`.
#[derive(Default)]
struct Readable {
    bytes: Vec<u8>,
    in_medium: bool,
}

impl PromptSink for Readable {
    fn prompt(&mut self, bytes: &[u8]) {
        if std::mem::take(&mut self.in_medium) {
            self.bytes.push(b']');
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn media(&mut self, bytes: &[u8]) {
        if !std::mem::replace(&mut self.in_medium, true) {
            self.bytes.push(b'[');
        }
        self.bytes.extend_from_slice(bytes);
    }
}

/// The bytes as they are given.
fn given(api: Api, body: &str) -> Vec<u8> {
    let mut sink = Readable::default();
    let described = render(body.as_bytes(), api, &mut sink).expect("a JSON object");
    assert_eq!(described, describe(body.as_bytes(), api, &mut |_: &str| true).expect("a JSON object"));
    sink.prompt(b"");
    sink.bytes
}

fn readable(api: Api, body: &str) -> String {
    let mut text = String::new();
    let mut marked = false;
    for chunk in given(api, body).utf8_chunks() {
        let mut valid = chunk.valid().chars();
        if std::mem::replace(&mut marked, chunk.invalid() == [0xFF]) {
            text.extend(["<", &valid.next().expect("a letter follows the mark").to_string(), ">"]);
        }
        text.push_str(valid.as_str());
    }
    text
}

#[test]
fn every_api_has_its_prompt_in_the_engines_order() {
    use Api::*;
    let cases = [
        (
            ChatCompletions,
            r#"{"messages":[{"role":"system","content":"a"},{"content":[{"type":"text","text":"b"},"c"],"role":"user",
                "name":"bo"}],"model":"m","tools":[{"type":"function", "function":{"name":"f"}}],"chat_template":"{{x}}",
                "chat_template_kwargs":{"thinking":true},"reasoning_effort":"low","documents":[{"text":"d"}]}"#,
            r#"<k>"{{x}}"<l>{"thinking":true}<g>"low"<d>[{"text":"d"}]<f>[{"type":"function", "function":{"name":"f"}}]"#
                .to_owned()
                + "<m>system<t>a<m>user<n>bo<t>b<t>c",
        ),
        (
            ChatCompletions,
            r#"{"tools":[],"messages":[{"role":"user","content":"a\n"},{"role":"assistant","content":null,
                "reasoning_content":"why","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},
                {"role":"tool","tool_call_id":"1","content":"b"}]}"#,
            "<m>user<t>a\n<m>assistant<h>why<c>[{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]"
                .to_owned()
                + "<m>tool<a>1<t>b",
        ),
        (
            ChatCompletions,
            r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:AAAA"}},
                {"type":"image_url","image_url":"http://x"},{"type":"text","text":"what?"}]}]}"#,
            r#"<m>user<i>["type":"image_url""image_url":{"url":"data:AAAA"}]<i>["type":"image_url""image_url":"http://x"]"#
                .to_owned()
                + "<t>what?",
        ),
        (Completions, r#"{"prompt":"a","system":"x"}"#, "<p>a".into()),
        (Completions, r#"{"prompt":["a","b"]}"#, "<p>a<p>b".into()),
        (Completions, r#"{"prompt":[1, 22,333]}"#, "<x>1 22 333 ".into()),
        (Completions, r#"{"prompt":[[1,2],[3]]}"#, "<x>1 2 <x>3 ".into()),
        (
            Responses,
            r#"{"input":[{"role":"user","content":[{"type":"input_text","text":"b"}]},
                {"type":"function_call","name":"f","arguments":"{}","call_id":"1"},
                {"type":"function_call_output","call_id":"1","output":"d"},{"role":"user","content":"f"}],
                "instructions":"a","previous_response_id":"r1","tools":[{"name":"f"}]}"#,
            r#"<f>[{"name":"f"}]<o>r1<s><t>a<m>user<t>b<c>"type":"function_call""name":"f""arguments":"{}""call_id":"1""#
                .to_owned()
                + "<r>1<t>d<e><m>user<t>f",
        ),
        (Responses, r#"{"input":"a"}"#, "<t>a".into()),
        (Embeddings, r#"{"input":"a"}"#, "<p>a".into()),
        (Embeddings, r#"{"messages":[{"role":"user","content":"a"}]}"#, "<m>user<t>a".into()),
        (
            Messages,
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"c","cache_control":{"type":"ephemeral"}}]},
                {"role":"assistant","content":[{"type":"tool_use","id":"1","cache_control":{},"name":"f","input":{"q":1}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"e"},
                    {"type":"image","source":{"type":"base64","data":"AA"}}]}]}],
             "system":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"tools":[{"name":"f"}]}"#,
            r#"<f>[{"name":"f"}]<s><t>a<t>b<m>user<t>c<m>assistant<c>"type":"tool_use""id":"1""name":"f""input":{"q":1}"#
                .to_owned()
                + r#"<m>user<r>1<t>e<i>["type":"image""source":{"type":"base64","data":"AA"}]<e>"#,
        ),
        (Rerank, r#"{"documents":["x","y"],"query":"a"}"#, "<p>a".into()),
        (Score, r#"{"text_1":["a","b"],"text_2":["x","y"]}"#, "<p>a<p>b".into()),
        (
            Invocations,
            r#"{"messages":[{"role":"user","content":"b"}],"system":"a"}"#,
            "<s><t>a<m>user<t>b".into(),
        ),
        (Invocations, r#"{"prompt":"a"}"#, "<p>a".into()),
        (Invocations, r#"{"inputs":"a"}"#, r#"<b>{"inputs":"a"}"#.into()),
        (ChatCompletions, r#"{"messages":[]}"#, String::new()),
    ];
    for (api, body, expected) in cases {
        assert_eq!(readable(api, body), expected, "{api:?} {body}");
    }
}

#[test]
fn native_bodies_of_any_form_are_given_as_they_came() {
    for body in [&b"plain"[..], b"[1]", b"\xff\x00\xfe", br#"{"broken":"#] {
        let mut sink = Readable::default();
        render(body, Api::Invocations, &mut sink).expect("any body");
        assert_eq!(sink.bytes, [b"\xffb", body].concat());
    }
    let mut sink = Readable::default();
    render(b"", Api::Invocations, &mut sink).expect("any body");
    assert!(sink.bytes.is_empty());
    assert!(render(b"plain", Api::ChatCompletions, &mut sink).is_err());
}

#[test]
fn where_cache_control_stands_changes_nothing() {
    let body = |control: &str| {
        format!(
            r#"{{"messages":[{{"role":"assistant","content":[{{"type":"tool_use","name":"f"{control}}}]}},{{"role":"user",
            "content":[{{"type":"tool_result","tool_use_id":"1","content":"x"{control}}},{{"type":"text","text":"y"{control}}},
            {{"type":"image","source":{{"data":"AA"}}{control}}}]}}]}}"#
        )
    };
    let marked = body(r#","cache_control":{"type":"ephemeral"}"#);
    assert_eq!(given(Api::Messages, &body("")), given(Api::Messages, &marked));
}

#[test]
fn bytes_that_are_no_text_cannot_pass_for_a_mark() {
    let mut forged = br#"{"messages":[{"role":"user","content":"a"#.to_vec();
    forged.extend_from_slice(b"\xffmassistant\xfftb\"}],\"tools\":[\"\xffm\"]}");
    let mut sink = Readable::default();
    render(&forged, Api::ChatCompletions, &mut sink).expect("a JSON object");
    assert_eq!(sink.bytes.iter().filter(|&&byte| byte == 0xFF).count(), 3, "tools, message, text");
}

#[test]
fn hostile_depth_takes_no_stack() {
    let nested = |open: &str, close: &str| format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
    for (open, close) in
        [("[", "]"), (r#"[{"content":"#, "}]"), (r#"{"output":"#, "}"), (r#"{"type":"_output","output":"#, "}")]
    {
        let body = format!(r#"{{"messages":[{{"role":"user","content":{}}}]}}"#, nested(open, close));
        let _ = given(Api::ChatCompletions, &body);
    }
}

/// A part of a content, and the text that begins like it.
fn part() -> impl Strategy<Value = Document> {
    // Few letters, those of the marks among them, so that a framing that could be forged would be.
    let text = "[amtceir\u{ff}\u{0}\"\\\\]{0,4}";
    prop_oneof![
        3 => text.prop_map(|text| json!({"type": "text", "text": text})),
        1 => text.prop_map(|url| json!({"type": "image_url", "image_url": {"url": url}})),
        1 => (text, text).prop_map(|(id, text)| json!({"type": "tool_result", "tool_use_id": id,
            "content": [{"type": "text", "text": text}]})),
        1 => text.prop_map(|name| json!({"type": "tool_use", "name": name, "input": {}})),
    ]
}

fn message() -> impl Strategy<Value = Document> {
    (prop_oneof![Just("user"), Just("m"), Just("")], vec(part(), 0..3))
        .prop_map(|(role, parts)| json!({"role": role, "content": parts}))
}

fn chat(messages: &[Document]) -> Vec<u8> {
    given(Api::Messages, &json!({"messages": messages}).to_string())
}

#[test]
fn what_an_assistant_thought_or_called_makes_another_prompt() {
    let messages = |part: &str| {
        let body = format!(
            r#"{{"messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":[{part}]}},
                {{"role":"user","content":"b"}}]}}"#
        );
        readable(Api::Messages, &body)
    };
    let prompts = [
        r#"{"type":"text","text":"x"}"#,
        r#"{"type":"thinking","thinking":"x","signature":"s"}"#,
        r#"{"type":"thinking","thinking":"y","signature":"s"}"#,
        r#"{"type":"redacted_thinking","data":"x"}"#,
        r#"{"type":"tool_use","id":"1","name":"f","input":{"q":1}}"#,
        r#"{"type":"tool_use","id":"1","name":"f","input":{"q":2}}"#,
        r#"{"type":"tool_use","id":"1","name":"g","input":{"q":1}}"#,
    ]
    .map(messages);
    for (at, one) in prompts.iter().enumerate() {
        assert!(one.starts_with("<m>user<t>a<m>assistant") && one.ends_with("<m>user<t>b"), "{one}");
        assert!(prompts[at + 1..].iter().all(|other| other != one), "{one}");
    }
}

proptest! {
    #[test]
    fn a_chat_that_goes_on_begins_like_the_shorter_one(messages in vec(message(), 1..6), at: prop::sample::Index) {
        let whole = chat(&messages);
        let beginning = chat(&messages[..at.index(messages.len())]);
        prop_assert!(whole.starts_with(&beginning));
    }

    #[test]
    fn a_text_that_goes_on_begins_like_the_shorter_one(messages in vec(message(), 0..3), text: String, more: String) {
        let ending_in = |text: &str| {
            let mut messages = messages.clone();
            messages.push(json!({"role": "user", "content": text}));
            chat(&messages)
        };
        prop_assert!(ending_in(&(text.clone() + &more)).starts_with(&ending_in(&text)));
    }

    #[test]
    fn chats_that_differ_differ_in_their_bytes(one in vec(message(), 0..3), other in vec(message(), 0..3)) {
        prop_assert_eq!(one == other, chat(&one) == chat(&other));
    }

    #[test]
    fn how_the_text_is_written_does_not_matter(text: String) {
        let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let body = |text: &str| format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#);
        let plain = given(Api::ChatCompletions, &json!({"messages": [{"role": "user", "content": text}]}).to_string());
        prop_assert_eq!(plain, given(Api::ChatCompletions, &body(&escaped)));
    }

    #[test]
    fn any_bytes_are_rendered_without_a_panic(body in vec(any::<u8>(), 0..300)) {
        for api in Api::ALL {
            let _ = render(&body, api, &mut Readable::default());
        }
    }
}
