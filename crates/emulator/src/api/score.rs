//! `/v1/score`: how much pairs of texts have to do with each other.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::rerank::{pair_tokens, relevance};
use crate::call::Call;
use crate::failure::Failure;
use crate::fields::Fields;
use crate::reply::{self, Reply};

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a string or a list of strings")]
enum Texts {
    One(String),
    Many(Vec<String>),
}

pub(crate) async fn answer(call: &Call<'_>) -> Result<Reply, Failure> {
    let pairs = pairs(&call.fields)?;
    let prompts = pairs.iter().map(|(left, right)| pair_tokens(left, right)).collect();
    let batch = call.read(prompts).await?;
    let usage = batch.usage();
    let data: Value = pairs
        .iter()
        .enumerate()
        .map(|(index, (left, right))| json!({"index": index, "object": "score", "score": relevance(left, right)}))
        .collect();
    let body = json!({
        "id": call.emulator.fresh_id("score-"),
        "object": "list",
        "created": call.emulator.unix_seconds(),
        "model": call.model_name()?,
        "data": data,
        "usage": usage.openai(),
    });
    Ok(reply::counted_json(&body, usage))
}

/// One against many, or pairwise, as vLLM reads `text_1`/`text_2` and their newer names.
fn pairs(fields: &Fields<'_>) -> Result<Vec<(String, String)>, Failure> {
    let left = texts(fields, ["text_1", "queries"])?;
    let right = texts(fields, ["text_2", "documents"])?;
    match (left.len(), right.len()) {
        (_, 0) | (0, _) => Err(Failure::Malformed("text_1 and text_2 must not be empty".into())),
        (1, _) => Ok(right.into_iter().map(|text| (left[0].clone(), text)).collect()),
        (ours, theirs) if ours == theirs => Ok(left.into_iter().zip(right).collect()),
        (ours, theirs) => Err(Failure::Malformed(format!(
            "text_1 has {ours} texts and text_2 has {theirs}; text_1 must have 1 or as many as text_2"
        ))),
    }
}

fn texts(fields: &Fields<'_>, names: [&str; 2]) -> Result<Vec<String>, Failure> {
    let name = if fields.has(names[1]) { names[1] } else { names[0] };
    Ok(match fields.required(name)? {
        Texts::One(text) => vec![text],
        Texts::Many(texts) => texts,
    })
}
