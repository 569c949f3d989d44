//! The chunks of a streamed chat completion.

use bytes::BytesMut;

use crate::answer::Answer;
use crate::api::chat::{finish_reason, tool_call_id};
use crate::call::UsageChunks;
use crate::event_stream::EventFormat;
use crate::json::{push, push_escaped, push_number, quoted};
use crate::usage::Usage;

/// The beginning of every chunk is written once; a token adds little to it.
#[derive(Debug)]
pub(crate) struct ChatFormat {
    id: String,
    /// Up to the list of choices.
    head: String,
    usage_chunks: UsageChunks,
    /// Whether answers are tool calls.
    calls_tool: bool,
}

impl ChatFormat {
    pub(crate) fn new(id: &str, created: u64, model: &str, usage_chunks: UsageChunks) -> Self {
        let head = format!(
            "data: {{\"id\":\"{id}\",\"object\":\"chat.completion.chunk\",\"created\":{created},\"model\":{},\"choices\":[",
            quoted(model)
        );
        Self { id: id.to_owned(), head, usage_chunks, calls_tool: false }
    }

    fn chunk(
        &self,
        choice: usize,
        usage: Usage,
        finish: Option<&str>,
        out: &mut BytesMut,
        delta: impl FnOnce(&mut BytesMut),
    ) {
        push(out, &self.head);
        push(out, "{\"index\":");
        push_number(out, choice as u32);
        push(out, ",\"delta\":{");
        delta(out);
        push(out, "},\"logprobs\":null,\"finish_reason\":");
        match finish {
            Some(reason) => {
                push(out, "\"");
                push(out, reason);
                push(out, "\",\"stop_reason\":null}]");
            }
            None => push(out, "null}]"),
        }
        if self.usage_chunks == UsageChunks::Every {
            push(out, ",\"usage\":");
            usage.push_openai(out);
        }
        push(out, "}\n\n");
    }
}

impl EventFormat for ChatFormat {
    fn begin(&mut self, choice: usize, answer: &Answer, usage: Usage, out: &mut BytesMut) {
        self.chunk(choice, usage, None, out, |out| push(out, "\"role\":\"assistant\",\"content\":\"\""));
        let Some(name) = answer.tool() else { return };
        self.calls_tool = true;
        self.chunk(choice, usage, None, out, |out| {
            push(out, "\"tool_calls\":[{\"index\":0,\"id\":\"");
            push(out, &tool_call_id(&self.id, choice));
            push(out, "\",\"type\":\"function\",\"function\":{\"name\":");
            push(out, &quoted(name));
            push(out, ",\"arguments\":\"\"}}]");
        });
    }

    fn piece(&mut self, choice: usize, piece: &str, usage: Usage, out: &mut BytesMut) {
        self.chunk(choice, usage, None, out, |out| {
            if self.calls_tool {
                push(out, "\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"");
                push_escaped(out, piece);
                push(out, "\"}}]");
            } else {
                push(out, "\"content\":\"");
                push_escaped(out, piece);
                push(out, "\"");
            }
        });
    }

    fn finish(&mut self, choice: usize, answer: &Answer, usage: Usage, out: &mut BytesMut) {
        self.chunk(choice, usage, Some(finish_reason(answer.finish())), out, |out| {
            if !self.calls_tool {
                push(out, "\"content\":\"\"");
            }
        });
    }

    fn close(&mut self, usage: Usage, out: &mut BytesMut) {
        if self.usage_chunks != UsageChunks::None {
            push(out, &self.head);
            push(out, "],\"usage\":");
            usage.push_openai(out);
            push(out, "}\n\n");
        }
        push(out, "data: [DONE]\n\n");
    }
}
