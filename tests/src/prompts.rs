//! Requests: long documents and questions about them.

use serde_json::{Value, json};

/// Text of that many tokens or some more. Other numbers give texts that differ from the first words on.
pub fn document(number: u64, tokens: usize) -> String {
    // English has 4.2 characters a token; numbers have fewer.
    let length = tokens * 42 / 10;
    let sentence = |ordinal| format!("Document {number}, line {ordinal}: it joins places that are equally warm. ");
    let mut text = String::with_capacity(length + 100);
    for ordinal in 0.. {
        if text.len() >= length {
            break;
        }
        text += &sentence(ordinal);
    }
    text
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
