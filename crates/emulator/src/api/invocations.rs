//! `/invocations`, the SageMaker container path: any API's body, told apart by its fields, or `{"inputs": …}`.

use serde_json::json;

use crate::answer::LengthWish;
use crate::api::completions::text_tokens;
use crate::api::{chat, completions, embeddings, rerank, score};
use crate::call::Call;
use crate::failure::Failure;
use crate::fields::Fields;
use crate::reply::{self, Reply};

/// Answer length where `parameters` says nothing, as Hugging Face's containers have it.
const DEFAULT_NEW_TOKENS: u32 = 20;

pub(crate) async fn answer(call: &Call<'_>) -> Result<Reply, Failure> {
    let fields = &call.fields;
    if fields.has("messages") {
        chat::answer(call).await
    } else if fields.has("prompt") {
        completions::answer(call).await
    } else if fields.has("input") {
        embeddings::answer(call).await
    } else if fields.has("query") {
        rerank::answer(call).await
    } else if fields.has("text_1") {
        score::answer(call).await
    } else if fields.has("inputs") {
        generated_text(call).await
    } else {
        Err(Failure::Malformed(
            "The body fits no API: it must hold messages, prompt, input, query, text_1 or inputs.".into(),
        ))
    }
}

/// `{"inputs": "…", "parameters": {"max_new_tokens": 64}}` gives `[{"generated_text": "…"}]`.
async fn generated_text(call: &Call<'_>) -> Result<Reply, Failure> {
    let inputs: String = call.fields.required("inputs")?;
    let parameters = match call.fields.raw("parameters") {
        Some(parameters) => Fields::parse(parameters.get().as_bytes())?,
        None => Fields::parse(b"{}")?,
    };
    let max_new_tokens = parameters.optional::<u32>("max_new_tokens")?.unwrap_or(DEFAULT_NEW_TOKENS);
    if max_new_tokens == 0 {
        return Err(Failure::Malformed("parameters.max_new_tokens must be at least 1, got 0.".into()));
    }
    let wish = LengthWish { max_tokens: Some(max_new_tokens), ..LengthWish::default() };
    let batch = call.generate(vec![text_tokens(&inputs)], 1, wish, None)?;
    call.finish(&batch).await?;
    let prefix = if parameters.or_default::<bool>("return_full_text")? { inputs.as_str() } else { "" };
    let texts: Vec<_> =
        batch.answers().map(|answer| json!({"generated_text": format!("{prefix}{}", answer.text())})).collect();
    Ok(reply::counted_json(&json!(texts), batch.usage()))
}
