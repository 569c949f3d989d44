//! `/v1/models` and `/v1/models/{id}`.

use serde_json::{Value, json};

use crate::emulator::Emulator;
use crate::failure::Failure;
use crate::reply::{self, Reply};

/// The model and its adapters.
pub(crate) fn list(emulator: &Emulator) -> Reply {
    let config = emulator.config();
    let names = std::iter::once(config.model.clone()).chain(emulator.adapters());
    let cards: Value = names.map(|name| card(emulator, &name)).collect();
    reply::json(&json!({"object": "list", "data": cards}))
}

pub(crate) fn one(emulator: &Emulator, name: &str) -> Result<Reply, Failure> {
    emulator.adapter(Some(name))?;
    Ok(reply::json(&card(emulator, name)))
}

fn card(emulator: &Emulator, name: &str) -> Value {
    let config = emulator.config();
    let is_adapter = name != config.model;
    json!({
        "id": name,
        "object": "model",
        "created": emulator.unix_seconds(),
        "owned_by": "vllm",
        "root": name,
        "parent": is_adapter.then_some(&config.model),
        "max_model_len": (!is_adapter).then_some(config.max_model_len),
        "permission": [],
    })
}
