//! `/v1/rerank`, `/v2/rerank`, `/rerank`: documents in the order of the words that they share with a query.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::completions::text_tokens;
use crate::call::Call;
use crate::content::Content;
use crate::failure::Failure;
use crate::reply::{self, Reply};

/// A document as text or, as multi-modal models take it, in parts.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a string or an object with content")]
enum Document {
    Text(String),
    Parts { content: Content },
}

impl Document {
    fn into_text(self) -> String {
        match self {
            Document::Text(text) => text,
            Document::Parts { content } => content.plain_text(),
        }
    }
}

pub(crate) async fn answer(call: &Call<'_>) -> Result<Reply, Failure> {
    let query: String = call.fields.required("query")?;
    let documents: Vec<Document> = call.fields.required("documents")?;
    let documents: Vec<String> = documents.into_iter().map(Document::into_text).collect();
    if documents.is_empty() {
        return Err(Failure::Malformed("documents: must hold at least 1 document".into()));
    }
    let top = call.fields.optional::<usize>("top_n")?.filter(|top| *top > 0).unwrap_or(documents.len());
    let batch = call.read(documents.iter().map(|document| pair_tokens(&query, document)).collect()).await?;
    let mut scored: Vec<(usize, f64)> =
        documents.iter().map(|document| relevance(&query, document)).enumerate().collect();
    scored.sort_by(|left, right| right.1.total_cmp(&left.1));
    let results: Value = scored
        .into_iter()
        .take(top)
        .map(|(index, score)| json!({"index": index, "document": {"text": documents[index]}, "relevance_score": score}))
        .collect();
    let usage = batch.usage();
    let body = json!({
        "id": call.emulator.fresh_id("rerank-"),
        "model": call.model_name()?,
        "usage": {"prompt_tokens": usage.prompt, "total_tokens": usage.prompt},
        "results": results,
    });
    Ok(reply::counted_json(&body, usage))
}

/// What a cross-encoder reads: the query, then the document.
pub(crate) fn pair_tokens(query: &str, document: &str) -> Vec<isotherm_engine_model::Token> {
    let mut tokens = text_tokens(query);
    tokens.extend(text_tokens(document));
    tokens
}

/// Share of the query's words that the document has, 0 to 1.
pub(crate) fn relevance(query: &str, document: &str) -> f64 {
    let words: HashSet<String> = document.split_whitespace().map(str::to_lowercase).collect();
    let asked: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    if asked.is_empty() {
        return 0.0;
    }
    asked.iter().filter(|word| words.contains(*word)).count() as f64 / asked.len() as f64
}
