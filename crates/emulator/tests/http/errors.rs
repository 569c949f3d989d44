//! Bad requests get real statuses and vLLM's error JSON.

use bytes::Bytes;
use http::Method;
use isotherm_emulator::{ApiKey, EmulatorConfig, start};
use serde_json::json;

use crate::client::{Client, chat, document, engine, eventually, fast, post, with};

#[tokio::test]
async fn an_unknown_model_is_not_found() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let request = with(chat("Hello"), json!({"model": "other", "stream": true}));
    let reply = client.post("/v1/chat/completions", &request).await;
    assert_eq!(reply.status, 404);
    assert_eq!(reply.json()["error"]["type"], "NotFoundError");
    assert_eq!(reply.json()["error"]["code"], 404);
    assert_eq!(client.get("/v1/models/other").await.status, 404);
}

#[tokio::test]
async fn too_long_a_prompt_is_refused_before_any_head() {
    let engine = start(EmulatorConfig { max_model_len: 1_000, ..fast() }).unwrap();
    let mut client = Client::new(&engine).await;
    let request = with(chat(&document(2_000)), json!({"stream": true}));
    let reply = client.post("/v1/chat/completions", &request).await;
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("maximum context length is 1000 tokens"), "{}", reply.text());
    let greedy = with(chat("Hello"), json!({"max_tokens": 1_000}));
    assert_eq!(client.post("/v1/chat/completions", &greedy).await.status, 400);
}

#[tokio::test]
async fn bodies_that_are_no_request_are_refused() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    for body in ["", "{", "[]", "{}", r#"{"messages": 7}"#, r#"{"messages": []}"#, "\u{0}"] {
        let reply = client.send(Method::POST, "/v1/chat/completions", Bytes::from(body)).await;
        assert_eq!(reply.status, 400, "{body}");
        assert_eq!(reply.json()["error"]["code"], 400, "{body}");
    }
    for wrong in [json!({"max_tokens": 0}), json!({"n": 0}), json!({"stream_options": {"include_usage": true}})] {
        assert_eq!(client.post("/v1/chat/completions", &with(chat("Hello"), wrong)).await.status, 400);
    }
    let half_empty = json!({"prompt": ["One", ""], "max_tokens": 100_000, "ignore_eos": true});
    assert_eq!(client.post("/v1/completions", &half_empty).await.status, 400);
    eventually("the abort of the first prompt", || engine.statistics().aborted == 1).await;
    let reply = client.post("/v1/messages", &json!({"messages": []})).await;
    assert_eq!(reply.json()["error"]["type"], "invalid_request_error");
}

#[tokio::test]
async fn too_large_a_body_is_refused() {
    let engine = start(EmulatorConfig { max_body_bytes: 1_000, ..fast() }).unwrap();
    let reply = Client::new(&engine).await.post("/v1/chat/completions", &chat(&document(500))).await;
    assert_eq!(reply.status, 413);
}

#[tokio::test]
async fn unknown_paths_and_methods_are_told_apart() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    assert_eq!(client.get("/pause").await.status, 404);
    assert_eq!(client.get("/v1/chat/completions").await.status, 405);
}

#[tokio::test]
async fn a_key_is_asked_for_where_vllm_asks() {
    let engine = start(EmulatorConfig { api_key: Some(ApiKey::new("k1")), ..fast() }).unwrap();
    let mut client = Client::new(&engine).await;
    assert_eq!(client.post("/v1/chat/completions", &chat("Hello")).await.status, 401);
    for (key, status) in [("Bearer k1", 200), ("Bearer k2", 401), ("k1", 401)] {
        let mut request = post("/v1/chat/completions", &chat("Hello"));
        request.headers_mut().insert("authorization", key.parse().unwrap());
        assert_eq!(client.request(request).await.status, status, "{key}");
    }
    assert_eq!(client.get("/health").await.status, 200);
    assert_eq!(client.post("/invocations", &chat("Hello")).await.status, 200);
}
