//! A response object of `/v1/responses` as it grows: what the request fixed, then status, output and usage.

use serde_json::{Value, json};

use crate::answer::{Answer, Finish};
use crate::call::Call;
use crate::failure::Failure;
use crate::usage::Usage;

/// Everything of a response that is known before its generation.
#[derive(Debug, Clone)]
pub(crate) struct ResponseDraft {
    id: String,
    /// The response without status, output and usage.
    frame: Value,
}

impl ResponseDraft {
    pub(crate) fn new(call: &Call<'_>) -> Result<Self, Failure> {
        let id = call.emulator.fresh_id("resp_");
        let echo = |name: &str, default: Value| Ok(call.fields.optional::<Value>(name)?.unwrap_or(default));
        let frame = json!({
            "id": id,
            "object": "response",
            "created_at": call.emulator.unix_seconds(),
            "model": call.model_name()?,
            "background": echo("background", json!(false))?,
            "instructions": echo("instructions", Value::Null)?,
            "max_output_tokens": echo("max_output_tokens", Value::Null)?,
            "metadata": echo("metadata", json!({}))?,
            "parallel_tool_calls": true,
            "previous_response_id": echo("previous_response_id", Value::Null)?,
            "reasoning": null,
            "service_tier": "auto",
            "store": echo("store", json!(true))?,
            "temperature": echo("temperature", json!(1.0))?,
            "text": {"format": {"type": "text"}},
            "tool_choice": echo("tool_choice", json!("auto"))?,
            "tools": echo("tools", json!([]))?,
            "top_p": echo("top_p", json!(1.0))?,
            "truncation": "disabled",
            "error": null,
        });
        Ok(Self { id, frame })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Without any output yet, or given up.
    pub(crate) fn without_output(&self, status: &str) -> Value {
        self.body(status, json!([]), Value::Null, Value::Null)
    }

    pub(crate) fn completed(&self, answer: &Answer, usage: Usage) -> Value {
        let output = json!([self.item(answer, true)]);
        match answer.finish() {
            Finish::Length => {
                self.body("incomplete", output, usage.responses(), json!({"reason": "max_output_tokens"}))
            }
            Finish::Stop | Finish::ToolCall => self.body("completed", output, usage.responses(), Value::Null),
        }
    }

    /// The one output item, empty before its first token or complete.
    pub(crate) fn item(&self, answer: &Answer, complete: bool) -> Value {
        let status = match (complete, answer.finish()) {
            (false, _) => "in_progress",
            (true, Finish::Length) => "incomplete",
            (true, _) => "completed",
        };
        match answer.tool() {
            Some(name) => json!({
                "type": "function_call",
                "id": self.item_id(answer),
                "call_id": self.id.replacen("resp_", "call_", 1),
                "name": name,
                "arguments": if complete { answer.text() } else { "" },
                "status": status,
            }),
            None => json!({
                "type": "message",
                "id": self.item_id(answer),
                "role": "assistant",
                "content": if complete { json!([text_part(answer.text())]) } else { json!([]) },
                "status": status,
            }),
        }
    }

    pub(crate) fn item_id(&self, answer: &Answer) -> String {
        self.id.replacen("resp_", if answer.tool().is_some() { "fc_" } else { "msg_" }, 1)
    }

    fn body(&self, status: &str, output: Value, usage: Value, incomplete_details: Value) -> Value {
        let mut body = self.frame.clone();
        body["status"] = json!(status);
        body["output"] = output;
        body["usage"] = usage;
        body["incomplete_details"] = incomplete_details;
        body
    }
}

pub(crate) fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}
