//! `/v1/responses`: answers that the instance remembers, so that the next request can build on them.

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::answer::Answer;
use crate::api::response_draft::ResponseDraft;
use crate::api::responses_format::ResponsesFormat;
use crate::call::Call;
use crate::conversation::Conversation;
use crate::emulator::Emulator;
use crate::failure::Failure;
use crate::generation::Batch;
use crate::reply::{self, Reply};
use crate::response_store::StoredResponse;
use crate::tools::ToolChoice;

pub(crate) async fn answer(call: &Call<'_>) -> Result<Reply, Failure> {
    let mut conversation = earlier_turns(call)?;
    conversation.extend(&call.fields)?;
    let tools = call.tools()?;
    let tool = ToolChoice::parse(&tools, call.fields.raw("tool_choice"))?;
    let instructions: Option<Cow<'_, str>> = call.fields.optional("instructions")?;
    let wish = call.length_wish(&["max_output_tokens"])?;
    let draft = ResponseDraft::new(call)?;
    let kept = call.fields.optional("store")?.unwrap_or(true);
    let (streaming, background) = (call.is_streaming()?, call.fields.or_default("background")?);
    if background && (streaming || !kept) {
        return Err(Failure::Malformed("background needs store to be true and stream to be false".into()));
    }

    let prompt = conversation.prompt(instructions.as_deref(), &tools);
    let batch = call.generate(vec![prompt], 1, wish, tool.as_ref())?;
    if streaming {
        let format = ResponsesFormat::new(Rc::clone(call.emulator), draft, kept.then_some(conversation));
        return Ok(call.stream(batch, format));
    }
    if background {
        return Ok(reply::json(&generate_in_background(call.emulator, draft, conversation, batch)));
    }
    call.finish(&batch).await?;
    let body = complete(call.emulator, &draft, kept.then_some(conversation), &batch);
    Ok(reply::counted_json(&body, batch.usage()))
}

pub(crate) fn get(emulator: &Emulator, id: &str) -> Result<Reply, Failure> {
    let responses = emulator.responses().borrow();
    let stored = responses.get(id).ok_or_else(|| Failure::UnknownResponse(id.to_owned()))?;
    Ok(reply::json(&stored.body))
}

pub(crate) fn delete(emulator: &Emulator, id: &str) -> Result<Reply, Failure> {
    if !emulator.responses().borrow_mut().remove(id) {
        return Err(Failure::UnknownResponse(id.to_owned()));
    }
    Ok(reply::json(&json!({"id": id, "object": "response", "deleted": true})))
}

/// Ends the generation of a response made in the background.
pub(crate) fn cancel(emulator: &Emulator, id: &str) -> Result<Reply, Failure> {
    let mut responses = emulator.responses().borrow_mut();
    let stored = responses.get(id).ok_or_else(|| Failure::UnknownResponse(id.to_owned()))?;
    let Some(cancel) = &stored.cancel else {
        return Err(Failure::Malformed("Cannot cancel a response that is not being made in the background.".into()));
    };
    cancel.notify_one();
    let mut body = stored.body.clone();
    body["status"] = json!("cancelled");
    responses.put(id, StoredResponse { body: body.clone(), conversation: None, cancel: None });
    Ok(reply::json(&body))
}

/// Remembers a finished response.
pub(crate) fn store(
    emulator: &Emulator,
    draft: &ResponseDraft,
    body: Value,
    mut conversation: Conversation,
    answer: &Answer,
) {
    conversation.push_answer(answer);
    let stored = StoredResponse { body, conversation: Some(conversation), cancel: None };
    emulator.responses().borrow_mut().put(draft.id(), stored);
}

/// What `previous_response_id` refers to; nothing where it is absent.
fn earlier_turns(call: &Call<'_>) -> Result<Conversation, Failure> {
    let previous: Option<Cow<'_, str>> = call.fields.optional("previous_response_id")?;
    let Some(id) = previous else { return Ok(Conversation::default()) };
    let responses = call.emulator.responses().borrow();
    let stored = responses.get(&id).ok_or_else(|| Failure::UnknownResponse(id.to_string()))?;
    stored
        .conversation
        .clone()
        .ok_or_else(|| Failure::Malformed(format!("previous_response_id: the response '{id}' is not completed")))
}

/// The body of a finished response, stored where `conversation` is given.
fn complete(emulator: &Emulator, draft: &ResponseDraft, conversation: Option<Conversation>, batch: &Batch) -> Value {
    let answer = batch.first();
    let body = draft.completed(answer, batch.usage());
    if let Some(conversation) = conversation {
        store(emulator, draft, body.clone(), conversation, answer);
    }
    body
}

/// Returns the response as it stands at the beginning; it is stored, and completed by a task of its own.
fn generate_in_background(
    emulator: &Rc<Emulator>,
    draft: ResponseDraft,
    conversation: Conversation,
    batch: Batch,
) -> Value {
    let body = draft.without_output("queued");
    let cancel = Rc::new(Notify::new());
    let stored = StoredResponse { body: body.clone(), conversation: None, cancel: Some(Rc::clone(&cancel)) };
    emulator.responses().borrow_mut().put(draft.id(), stored);
    let task_emulator = Rc::clone(emulator);
    emulator.tasks().spawn(async move {
        tokio::select! {
            biased;
            () = cancel.notified() => {}
            () = batch.finished() => {
                complete(&task_emulator, &draft, Some(conversation), &batch);
            }
        }
    });
    body
}
