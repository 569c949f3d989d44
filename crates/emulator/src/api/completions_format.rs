//! The chunks of a streamed text completion.

use bytes::BytesMut;

use crate::answer::Answer;
use crate::api::chat::finish_reason;
use crate::call::UsageChunks;
use crate::event_stream::EventFormat;
use crate::json::{push, push_escaped, push_number, quoted};
use crate::usage::Usage;

/// The beginning of every chunk is written once; a token adds little to it.
#[derive(Debug)]
pub(crate) struct CompletionsFormat {
    /// Up to the list of choices.
    head: String,
    usage_chunks: UsageChunks,
}

impl CompletionsFormat {
    pub(crate) fn new(id: &str, created: u64, model: &str, usage_chunks: UsageChunks) -> Self {
        let model = quoted(model);
        let head = format!(
            "data: {{\"id\":\"{id}\",\"object\":\"text_completion\",\"created\":{created},\"model\":{model},\"choices\":["
        );
        Self { head, usage_chunks }
    }

    fn chunk(&self, choice: usize, piece: &str, finish: Option<&str>, usage: Usage, out: &mut BytesMut) {
        push(out, &self.head);
        push(out, "{\"index\":");
        push_number(out, choice as u32);
        push(out, ",\"text\":\"");
        push_escaped(out, piece);
        push(out, "\",\"logprobs\":null,\"finish_reason\":");
        match finish {
            Some(reason) => {
                push(out, "\"");
                push(out, reason);
                push(out, "\"");
            }
            None => push(out, "null"),
        }
        push(out, ",\"stop_reason\":null}]");
        if self.usage_chunks == UsageChunks::Every {
            push(out, ",\"usage\":");
            usage.push_openai(out);
        }
        push(out, "}\n\n");
    }
}

impl EventFormat for CompletionsFormat {
    fn begin(&mut self, _choice: usize, _answer: &Answer, _usage: Usage, _out: &mut BytesMut) {}

    fn piece(&mut self, choice: usize, piece: &str, usage: Usage, out: &mut BytesMut) {
        self.chunk(choice, piece, None, usage, out);
    }

    fn finish(&mut self, choice: usize, answer: &Answer, usage: Usage, out: &mut BytesMut) {
        self.chunk(choice, "", Some(finish_reason(answer.finish())), usage, out);
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
