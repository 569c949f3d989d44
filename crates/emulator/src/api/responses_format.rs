//! The events of a streamed response of `/v1/responses`.

use std::rc::Rc;

use bytes::BytesMut;
use serde_json::{Value, json};

use crate::answer::{Answer, Finish};
use crate::api::response_draft::{ResponseDraft, text_part};
use crate::api::responses::store;
use crate::conversation::Conversation;
use crate::emulator::Emulator;
use crate::event_stream::EventFormat;
use crate::json::{push, push_escaped, push_number};
use crate::usage::Usage;

/// Unlike the other APIs it says `response.created` before prefill, as vLLM does.
#[derive(Debug)]
pub(crate) struct ResponsesFormat {
    emulator: Rc<Emulator>,
    draft: ResponseDraft,
    /// What to store at the end, besides the response itself.
    conversation: Option<Conversation>,
    sequence: u32,
    /// Everything of a delta's event between its sequence number and its text.
    delta_middle: String,
    delta_head: &'static str,
}

impl ResponsesFormat {
    /// Stores the response at its end where `conversation` is given.
    pub(crate) fn new(emulator: Rc<Emulator>, draft: ResponseDraft, conversation: Option<Conversation>) -> Self {
        Self { emulator, draft, conversation, sequence: 0, delta_middle: String::new(), delta_head: "" }
    }

    fn event(&mut self, kind: &str, mut data: Value, out: &mut BytesMut) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        push(out, &format!("event: {kind}\ndata: {data}\n\n"));
    }
}

impl EventFormat for ResponsesFormat {
    fn open(&mut self, out: &mut BytesMut) {
        let response = self.draft.without_output("in_progress");
        self.event("response.created", json!({"response": response}), out);
        self.event("response.in_progress", json!({"response": response}), out);
    }

    fn begin(&mut self, _choice: usize, answer: &Answer, _usage: Usage, out: &mut BytesMut) {
        let id = self.draft.item_id(answer);
        let item = self.draft.item(answer, false);
        self.event("response.output_item.added", json!({"output_index": 0, "item": item}), out);
        if answer.tool().is_some() {
            self.delta_head = "event: response.function_call_arguments.delta\n\
                               data: {\"type\":\"response.function_call_arguments.delta\",\"sequence_number\":";
            self.delta_middle = format!(",\"item_id\":\"{id}\",\"output_index\":0,\"delta\":\"");
            return;
        }
        let part = json!({"item_id": id, "output_index": 0, "content_index": 0, "part": text_part("")});
        self.event("response.content_part.added", part, out);
        self.delta_head = "event: response.output_text.delta\n\
                           data: {\"type\":\"response.output_text.delta\",\"sequence_number\":";
        self.delta_middle =
            format!(",\"item_id\":\"{id}\",\"output_index\":0,\"content_index\":0,\"logprobs\":[],\"delta\":\"");
    }

    fn piece(&mut self, _choice: usize, piece: &str, _usage: Usage, out: &mut BytesMut) {
        push(out, self.delta_head);
        push_number(out, self.sequence);
        self.sequence += 1;
        push(out, &self.delta_middle);
        push_escaped(out, piece);
        push(out, "\"}\n\n");
    }

    fn finish(&mut self, _choice: usize, answer: &Answer, usage: Usage, out: &mut BytesMut) {
        let id = self.draft.item_id(answer);
        let place = |rest: Value| {
            let mut data = json!({"item_id": id, "output_index": 0});
            if let (Value::Object(data), Value::Object(rest)) = (&mut data, rest) {
                data.extend(rest);
            }
            data
        };
        if let Some(name) = answer.tool() {
            let data = place(json!({"name": name, "arguments": answer.text()}));
            self.event("response.function_call_arguments.done", data, out);
        } else {
            let text = place(json!({"content_index": 0, "text": answer.text(), "logprobs": []}));
            self.event("response.output_text.done", text, out);
            let part = place(json!({"content_index": 0, "part": text_part(answer.text())}));
            self.event("response.content_part.done", part, out);
        }
        let item = self.draft.item(answer, true);
        self.event("response.output_item.done", json!({"output_index": 0, "item": item}), out);
        let response = self.draft.completed(answer, usage);
        let kind = if answer.finish() == Finish::Length { "response.incomplete" } else { "response.completed" };
        self.event(kind, json!({"response": response}), out);
        if let Some(conversation) = self.conversation.take() {
            store(&self.emulator, &self.draft, response, conversation, answer);
        }
    }

    fn close(&mut self, _usage: Usage, _out: &mut BytesMut) {}
}
