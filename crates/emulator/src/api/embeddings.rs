//! `/v1/embeddings`: a unit vector for each input, equal for equal tokens.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isotherm_engine_model::Token;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::fold;
use crate::api::completions::Prompts;
use crate::call::Call;
use crate::failure::Failure;
use crate::reply::{self, Reply};

/// Length of the vectors unless the request says otherwise.
const DEFAULT_DIMENSIONS: usize = 256;
const MOST_DIMENSIONS: usize = 8_192;

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Float,
    /// Little-endian 32-bit floats; what openai-python asks for unless told otherwise.
    Base64,
}

pub(crate) async fn answer(call: &Call<'_>) -> Result<Reply, Failure> {
    let inputs = call.fields.required::<Prompts>("input")?.tokens()?;
    let dimensions = call.fields.optional("dimensions")?.unwrap_or(DEFAULT_DIMENSIONS);
    if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
        return Err(Failure::Malformed(format!("dimensions is {dimensions}, but must be 1 to {MOST_DIMENSIONS}")));
    }
    let encoding: Encoding = call.fields.or_default("encoding_format")?;
    let seed = call.emulator.config().seed;
    let data: Value = inputs
        .iter()
        .enumerate()
        .map(|(index, tokens)| {
            let vector = vector(seed, tokens, dimensions);
            json!({"object": "embedding", "index": index, "embedding": encode(&vector, encoding)})
        })
        .collect();
    let batch = call.read(inputs).await?;
    let usage = batch.usage();
    let body = json!({
        "id": call.emulator.fresh_id("embd-"),
        "object": "list",
        "created": call.emulator.unix_seconds(),
        "model": call.model_name()?,
        "data": data,
        "usage": usage.openai(),
    });
    Ok(reply::counted_json(&body, usage))
}

fn vector(seed: u64, tokens: &[Token], dimensions: usize) -> Vec<f32> {
    let mut random = Pcg64Mcg::seed_from_u64(fold(seed, tokens));
    let mut vector: Vec<f32> = (0..dimensions).map(|_| random.random_range(-1.0..1.0)).collect();
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    for value in &mut vector {
        *value /= length;
    }
    vector
}

fn encode(vector: &[f32], encoding: Encoding) -> Value {
    match encoding {
        Encoding::Float => json!(vector),
        Encoding::Base64 => {
            let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
            json!(STANDARD.encode(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_length_one_and_depend_on_the_tokens() {
        let one = vector(0, &[1, 2], 64);
        assert!((one.iter().map(|value| value * value).sum::<f32>() - 1.0).abs() < 1e-5);
        assert_eq!(one, vector(0, &[1, 2], 64));
        assert_ne!(one, vector(0, &[2, 1], 64));
    }
}
