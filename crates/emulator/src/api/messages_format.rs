//! The events of a streamed Anthropic message.

use bytes::BytesMut;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::api::messages::{envelope, stop_reason, tool_use_id};
use crate::event_stream::EventFormat;
use crate::json::{push, push_escaped};
use crate::usage::Usage;

/// Like vLLM, it begins with the first token, when the usage of the prompt is known, and ends with `[DONE]`, which
/// Anthropic's clients skip.
#[derive(Debug)]
pub(crate) struct MessagesFormat {
    id: String,
    model: String,
    /// Whether the answer is a tool call.
    calls_tool: bool,
}

impl MessagesFormat {
    pub(crate) fn new(id: &str, model: &str) -> Self {
        Self { id: id.to_owned(), model: model.to_owned(), calls_tool: false }
    }
}

impl EventFormat for MessagesFormat {
    fn begin(&mut self, _choice: usize, answer: &Answer, usage: Usage, out: &mut BytesMut) {
        let mut message = envelope(&self.id, &self.model);
        message["usage"] = usage.anthropic();
        event(out, "message_start", &json!({"type": "message_start", "message": message}));
        self.calls_tool = answer.tool().is_some();
        let block = match answer.tool() {
            Some(name) => json!({"type": "tool_use", "id": tool_use_id(&self.id), "name": name, "input": {}}),
            None => json!({"type": "text", "text": ""}),
        };
        let start = json!({"type": "content_block_start", "index": 0, "content_block": block});
        event(out, "content_block_start", &start);
    }

    fn piece(&mut self, _choice: usize, piece: &str, _usage: Usage, out: &mut BytesMut) {
        push(
            out,
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":",
        );
        push(
            out,
            if self.calls_tool { "\"input_json_delta\",\"partial_json\":\"" } else { "\"text_delta\",\"text\":\"" },
        );
        push_escaped(out, piece);
        push(out, "\"}}\n\n");
    }

    fn finish(&mut self, _choice: usize, answer: &Answer, usage: Usage, out: &mut BytesMut) {
        event(out, "content_block_stop", &json!({"type": "content_block_stop", "index": 0}));
        let delta = json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(answer.finish()), "stop_sequence": null},
            "usage": usage.anthropic(),
        });
        event(out, "message_delta", &delta);
    }

    fn close(&mut self, _usage: Usage, out: &mut BytesMut) {
        event(out, "message_stop", &json!({"type": "message_stop"}));
        push(out, "data: [DONE]\n\n");
    }
}

fn event(out: &mut BytesMut, name: &str, data: &Value) {
    push(out, &format!("event: {name}\ndata: {data}\n\n"));
}
