//! Requests: long documents and questions about them.

use isotherm_workload::{Piece, PieceId, TextWriter};
use serde_json::{Value, json};

/// Text of about that many tokens. Other numbers give texts that share nothing.
pub fn document(number: u64, tokens: u32) -> String {
    TextWriter::new(0).prompt(&[Piece { id: PieceId(number), tokens }])
}

/// A chat request: the document as system prompt, then the question.
pub fn chat(document: &str, question: &str) -> Value {
    json!({
        "messages": [{"role": "system", "content": document}, {"role": "user", "content": question}],
        "max_tokens": 8,
    })
}

/// The same, streamed, with that many tokens of answer.
pub fn streamed_chat(document: &str, question: &str, tokens: u32) -> Value {
    let mut chat = chat(document, question);
    chat["stream"] = json!(true);
    chat["max_tokens"] = json!(tokens);
    chat["ignore_eos"] = json!(true);
    chat
}
