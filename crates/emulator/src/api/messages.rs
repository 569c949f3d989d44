//! `/v1/messages` and `/v1/messages/count_tokens`: Anthropic's form.

use isotherm_engine_model::{ChatTemplate, Token};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::answer::{Answer, Finish};
use crate::api::chat::Message;
use crate::api::messages_format::MessagesFormat;
use crate::call::Call;
use crate::content::Content;
use crate::failure::Failure;
use crate::fields::Fields;
use crate::reply::{self, Reply};
use crate::tools::ToolChoice;

pub(crate) async fn answer(call: &Call<'_>) -> Result<Reply, Failure> {
    let prompt = prompt(&call.fields)?;
    let wish = call.length_wish(&["max_tokens"])?;
    if wish.max_tokens.is_none() {
        return Err(Failure::Malformed("max_tokens: field required".into()));
    }
    let tool = ToolChoice::parse(&call.tools()?, call.fields.raw("tool_choice"))?;
    let batch = call.generate(vec![prompt], 1, wish, tool.as_ref())?;
    let id = call.emulator.fresh_id("msg_");
    let model = call.model_name()?;
    if call.is_streaming()? {
        return Ok(call.stream(batch, MessagesFormat::new(&id, &model)));
    }
    call.finish(&batch).await?;
    let mut body = envelope(&id, &model);
    body["content"] = json!([content_block(&id, batch.first())]);
    body["stop_reason"] = json!(stop_reason(batch.first().finish()));
    body["usage"] = batch.usage().anthropic();
    Ok(reply::counted_json(&body, batch.usage()))
}

pub(crate) fn count_tokens(fields: &Fields<'_>) -> Result<Reply, Failure> {
    Ok(reply::json(&json!({"input_tokens": prompt(fields)?.len()})))
}

/// A message without content yet.
pub(crate) fn envelope(id: &str, model: &str) -> Value {
    json!({
        "id": id,
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": model,
        "stop_reason": null,
        "stop_sequence": null,
    })
}

pub(crate) fn tool_use_id(id: &str) -> String {
    id.replacen("msg_", "toolu_", 1)
}

pub(crate) fn stop_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::ToolCall => "tool_use",
    }
}

fn content_block(id: &str, answer: &Answer) -> Value {
    match answer.tool() {
        Some(name) => {
            // Cut off by the token limit, the arguments are no JSON; then the call carries none.
            let input: Value = serde_json::from_str(answer.text()).unwrap_or_else(|_| json!({}));
            json!({"type": "tool_use", "id": tool_use_id(id), "name": name, "input": input})
        }
        None => json!({"type": "text", "text": answer.text()}),
    }
}

fn prompt(fields: &Fields<'_>) -> Result<Vec<Token>, Failure> {
    let messages: Vec<Message> = fields.required("messages")?;
    let tools: Vec<Box<RawValue>> = fields.or_default("tools")?;
    let mut template = ChatTemplate::new();
    template.tools(tools.iter().map(|tool| tool.get()));
    if let Some(system) = fields.optional::<Content>("system")? {
        template.open_message("system");
        system.render(&mut template);
        template.close_message();
    }
    for message in &messages {
        message.render(&mut template);
    }
    Ok(template.into_prompt())
}
