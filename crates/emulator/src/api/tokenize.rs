//! `/tokenize`: the tokens of a prompt or a conversation.

use serde_json::json;

use crate::api::chat;
use crate::api::completions::text_tokens;
use crate::emulator::Emulator;
use crate::failure::Failure;
use crate::fields::Fields;
use crate::reply::{self, Reply};

pub(crate) fn answer(emulator: &Emulator, fields: &Fields<'_>) -> Result<Reply, Failure> {
    let tokens =
        if fields.has("messages") { chat::prompt(fields)? } else { text_tokens(&fields.required::<String>("prompt")?) };
    Ok(reply::json(&json!({
        "count": tokens.len(),
        "max_model_len": emulator.config().max_model_len,
        "tokens": tokens,
        "token_strs": null,
    })))
}
