//! Whether a program serves the model that its container's environment names.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::Deserialize;

use crate::providers::{InstanceOrder, Reached, call, named_model};

/// How long the answer may take.
const ANSWER: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Listing {
    data: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    id: String,
    /// What it was loaded from, where the engine says so.
    root: Option<String>,
}

/// What is wrong with what a program lists, in a sentence; `None` where it lists what it should, or nothing says what that
/// is: the environment names no model, or the program lists none.
pub(super) async fn complaint(order: &InstanceOrder, reached: &Reached) -> Option<String> {
    let (variable, asked) = named_model(&order.environment)?;
    let (status, body) = call(reached, Method::GET, "/v1/models", Bytes::new(), ANSWER).await.ok()?;
    if status.is_success() { of_listing(variable, asked, &body) } else { None }
}

fn of_listing(variable: &str, asked: &str, listing: &[u8]) -> Option<String> {
    let Listing { data } = serde_json::from_slice(listing).ok()?;
    let is_asked = |model: &Listed| model.id == asked || model.root.as_deref() == Some(asked);
    if data.is_empty() || data.iter().any(is_asked) {
        return None;
    }
    let listed = data.iter().map(|model| model.id.as_str()).collect::<Vec<_>>().join(", ");
    Some(format!(
        "it serves {listed:.500}, and {variable} of its container's environment names {asked}: requests are answered by another \
         model than was asked for; correct the variable, or the command in aws.providers"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_model_than_was_asked_for_is_told_of() {
        let told = |listing: &str| of_listing("HF_MODEL_ID", "meta/llama", listing.as_bytes());
        let another = told(r#"{"data": [{"id": "qwen", "root": "qwen/qwen"}, {"id": "lora"}]}"#).unwrap();
        let expected = "it serves qwen, lora, and HF_MODEL_ID of its container's environment names meta/llama: ";
        assert!(another.starts_with(expected), "{another}");
        for as_asked in [r#"{"data": [{"id": "meta/llama"}]}"#, r#"{"data": [{"id": "chat", "root": "meta/llama"}]}"#] {
            assert_eq!(told(as_asked), None);
        }
        for silent in [r#"{"data": []}"#, "{}", "", "<html>"] {
            assert_eq!(told(silent), None, "{silent}");
        }
    }
}
