//! `/v1/chat/completions`.

use isotherm_engine_model::{ChatTemplate, Token};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::answer::{Answer, Finish};
use crate::api::chat_format::ChatFormat;
use crate::call::Call;
use crate::content::Content;
use crate::failure::Failure;
use crate::fields::Fields;
use crate::reply::{self, Reply};
use crate::tools::ToolChoice;

/// One message of a conversation.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    role: String,
    #[serde(default)]
    content: Content,
    #[serde(default)]
    tool_calls: Option<Box<RawValue>>,
}

impl Message {
    pub(crate) fn render(&self, template: &mut ChatTemplate) {
        template.open_message(&self.role);
        self.content.render(template);
        if let Some(calls) = self.tool_calls.as_ref().filter(|calls| calls.get() != "null") {
            template.text(calls.get());
        }
        template.close_message();
    }
}

pub(crate) async fn answer(call: &Call<'_>) -> Result<Reply, Failure> {
    let prompt = prompt(&call.fields)?;
    let wish = call.length_wish(&["max_completion_tokens", "max_tokens"])?;
    let tool = ToolChoice::parse(&call.tools()?, call.fields.raw("tool_choice"))?;
    let (choices, usage_chunks) = (call.choices()?, call.usage_chunks()?);
    let batch = call.generate(vec![prompt], choices, wish, tool.as_ref())?;
    let id = call.emulator.fresh_id("chatcmpl-");
    let created = call.emulator.unix_seconds();
    if call.is_streaming()? {
        return Ok(call.stream(batch, ChatFormat::new(&id, created, &call.model_name()?, usage_chunks)));
    }
    call.finish(&batch).await?;
    let body = json!({
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": call.model_name()?,
        "choices": batch.answers().enumerate().map(|(index, answer)| choice(&id, index, answer)).collect::<Value>(),
        "usage": batch.usage().openai(),
    });
    Ok(reply::counted_json(&body, batch.usage()))
}

/// The tokens of a conversation, as chat requests and `/tokenize` give it.
pub(crate) fn prompt(fields: &Fields<'_>) -> Result<Vec<Token>, Failure> {
    let messages: Vec<Message> = fields.required("messages")?;
    if messages.is_empty() {
        return Err(Failure::Malformed("messages: must hold at least 1 message".into()));
    }
    let tools: Vec<Box<RawValue>> = fields.or_default("tools")?;
    let mut template = ChatTemplate::new();
    template.tools(tools.iter().map(|tool| tool.get()));
    for message in &messages {
        message.render(&mut template);
    }
    Ok(template.into_prompt())
}

fn choice(id: &str, index: usize, answer: &Answer) -> Value {
    let message = match answer.tool() {
        Some(name) => json!({
            "role": "assistant",
            "content": null,
            "tool_calls": [{
                "id": tool_call_id(id, index),
                "type": "function",
                "function": {"name": name, "arguments": answer.text()},
            }],
        }),
        None => json!({"role": "assistant", "content": answer.text(), "tool_calls": []}),
    };
    json!({"index": index, "message": message, "logprobs": null, "finish_reason": finish_reason(answer.finish())})
}

pub(crate) fn tool_call_id(id: &str, index: usize) -> String {
    format!("{}-{index}", id.replacen("chatcmpl-", "chatcmpl-tool-", 1))
}

pub(crate) fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCall => "tool_calls",
    }
}
