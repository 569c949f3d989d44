//! The body of a chat completion request.

use std::borrow::Cow;

use bytes::Bytes;
use isotherm_workload::{PlannedRequest, TextWriter};
use serde::Serialize;

use crate::Options;

/// Where it goes.
pub(crate) const PATH: &str = "/v1/chat/completions";

/// Writes a planned request as one user message.
pub(crate) fn body(planned: &PlannedRequest, writer: &TextWriter, model: &str, options: &Options) -> Bytes {
    let content = Cow::Owned(writer.prompt(&planned.prompt));
    conversation(&[Message { role: Role::User, content }], planned.output_tokens, model, options)
}

/// Writes a conversation that asks for an answer of a certain length.
pub(crate) fn conversation(messages: &[Message<'_>], output_tokens: u32, model: &str, options: &Options) -> Bytes {
    let request = ChatRequest {
        model,
        messages,
        max_tokens: output_tokens,
        temperature: 0,
        stream: options.stream,
        stream_options: options.stream.then_some(StreamOptions { include_usage: true }),
        ignore_eos: options.ignore_eos.then_some(true),
    };
    let length: usize = messages.iter().map(|message| message.content.len() + 40).sum();
    let mut body = Vec::with_capacity(length + 512);
    match serde_json::to_writer(&mut body, &request) {
        Ok(()) => Bytes::from(body),
        Err(error) => unreachable!("strings and numbers always serialise into memory: {error}"),
    }
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Message<'a> {
    pub(crate) role: Role,
    pub(crate) content: Cow<'a, str>,
}

/// Who said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
struct ChatRequest<'a> {
    model: &'a str,
    messages: &'a [Message<'a>],
    max_tokens: u32,
    temperature: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_eos: Option<bool>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[cfg(test)]
mod tests {
    use isotherm_workload::{Documents, Plan, TextWriter};
    use serde_json::{Value, json};

    use super::body;
    use crate::Options;

    fn parsed(options: &Options) -> Value {
        let plan = Plan::new(Documents { document_tokens: 100, ..Documents::for_instances(2) }, 1).unwrap();
        let planned = plan.user(0).next().unwrap();
        serde_json::from_slice(&body(&planned, &TextWriter::new(1), "model \"x\"", options)).unwrap()
    }

    #[test]
    fn asks_for_a_stream_with_usage_and_an_exact_length() {
        let mut body = parsed(&Options::for_users(1));
        let content = body["messages"][0]["content"].take();
        assert!(content.as_str().is_some_and(|text| text.len() > 420 && text.contains("\n\n")));
        assert!(body["max_tokens"].as_u64().is_some_and(|tokens| (100..=160).contains(&tokens)));
        body["max_tokens"].take();
        assert_eq!(
            body,
            json!({
                "model": "model \"x\"", "messages": [{"role": "user", "content": null}], "max_tokens": null,
                "temperature": 0, "stream": true, "stream_options": {"include_usage": true}, "ignore_eos": true,
            })
        );
    }

    #[test]
    fn leaves_out_what_is_off() {
        let body = parsed(&Options { stream: false, ignore_eos: false, ..Options::for_users(1) });
        assert_eq!(body["stream"], json!(false));
        assert!(body.get("stream_options").is_none() && body.get("ignore_eos").is_none());
    }
}
