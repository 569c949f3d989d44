//! `/v1/completions`.

use isotherm_engine_model::{Token, tokenizer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::api::chat::finish_reason;
use crate::api::completions_format::CompletionsFormat;
use crate::call::Call;
use crate::failure::Failure;
use crate::reply::{self, Reply};

/// vLLM's default for `max_tokens` in this API.
const DEFAULT_MAX_TOKENS: u32 = 16;

/// Prompts in one request at most, as a bound of work per request.
const MOST_PROMPTS: usize = 2_048;

/// One prompt or several, as text or as tokens.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a string, a list of token ids, or a list of either")]
pub(crate) enum Prompts {
    Text(String),
    Tokens(Vec<Token>),
    Texts(Vec<String>),
    TokenLists(Vec<Vec<Token>>),
}

impl Prompts {
    /// The tokens of each prompt.
    pub(crate) fn tokens(self) -> Result<Vec<Vec<Token>>, Failure> {
        let prompts: Vec<Vec<Token>> = match self {
            Prompts::Text(text) => vec![text_tokens(&text)],
            Prompts::Tokens(tokens) => vec![tokens],
            Prompts::Texts(texts) => texts.iter().map(|text| text_tokens(text)).collect(),
            Prompts::TokenLists(lists) => lists,
        };
        match prompts.len() {
            1..=MOST_PROMPTS => Ok(prompts),
            count => Err(Failure::Malformed(format!("there are {count} prompts, but must be 1 to {MOST_PROMPTS}"))),
        }
    }
}

pub(crate) fn text_tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(text.len() / 4);
    tokenizer::tokenize(text, &mut tokens);
    tokens
}

pub(crate) async fn answer(call: &Call<'_>) -> Result<Reply, Failure> {
    let prompts = call.fields.required::<Prompts>("prompt")?.tokens()?;
    let mut wish = call.length_wish(&["max_tokens"])?;
    wish.max_tokens = wish.max_tokens.or(Some(DEFAULT_MAX_TOKENS));
    let (choices, usage_chunks) = (call.choices()?, call.usage_chunks()?);
    let batch = call.generate(prompts, choices, wish, None)?;
    let id = call.emulator.fresh_id("cmpl-");
    let created = call.emulator.unix_seconds();
    if call.is_streaming()? {
        return Ok(call.stream(batch, CompletionsFormat::new(&id, created, &call.model_name()?, usage_chunks)));
    }
    call.finish(&batch).await?;
    let body = json!({
        "id": id,
        "object": "text_completion",
        "created": created,
        "model": call.model_name()?,
        "choices": batch.answers().enumerate().map(|(index, answer)| choice(index, answer)).collect::<Value>(),
        "usage": batch.usage().openai(),
    });
    Ok(reply::counted_json(&body, batch.usage()))
}

fn choice(index: usize, answer: &Answer) -> Value {
    json!({
        "index": index,
        "text": answer.text(),
        "logprobs": null,
        "finish_reason": finish_reason(answer.finish()),
        "stop_reason": null,
    })
}
