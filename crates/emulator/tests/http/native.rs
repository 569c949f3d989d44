//! SageMaker's container paths: `/ping` and every form of `/invocations`.

use serde_json::json;

use crate::client::{Client, chat, engine};

#[tokio::test]
async fn openai_bodies_are_told_apart_by_their_fields() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    for (body, object) in [
        (chat("Hello"), "chat.completion"),
        (json!({"prompt": "Hello"}), "text_completion"),
        (json!({"input": "Hello"}), "list"),
    ] {
        assert_eq!(client.post("/invocations", &body).await.json()["object"], object);
    }
    let streamed = client.stream("/invocations", &json!({"prompt": "Hello", "stream": true})).await.rest().await;
    assert_eq!(streamed.last().unwrap().data, "[DONE]");
}

#[tokio::test]
async fn inputs_become_generated_text() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let request = json!({"inputs": "Where is it warm?", "parameters": {"max_new_tokens": 5}});
    let body = client.post("/invocations", &request).await.json();
    assert_eq!(body.as_array().unwrap().len(), 1);
    assert!(!body[0]["generated_text"].as_str().unwrap().is_empty());
    let full = json!({"inputs": "Where?", "parameters": {"max_new_tokens": 5, "return_full_text": true}});
    let body = client.post("/invocations", &full).await.json();
    assert!(body[0]["generated_text"].as_str().unwrap().starts_with("Where?"));
}

#[tokio::test]
async fn a_body_that_fits_nothing_is_refused() {
    let engine = engine();
    let reply = Client::new(&engine).await.post("/invocations", &json!({"question": "?"})).await;
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("inputs"));
}

#[tokio::test]
async fn ping_answers_both_methods() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    assert_eq!(client.get("/ping").await.status, 200);
    assert_eq!(client.post("/ping", &json!({})).await.status, 200);
}
