//! Every fault does what it says, and ends when it should.

use std::time::Duration;

use http::Method;
use isotherm_emulator::{EmulatorConfig, Faults, start};
use serde_json::{Value, json};

use crate::client::{Client, chat, engine, eventually, fast, post, with};

async fn set(client: &mut Client, faults: Value) {
    assert_eq!(client.post("/emulator/faults", &faults).await.status, 200);
}

fn stream() -> Value {
    with(chat("Hello"), json!({"stream": true}))
}

#[tokio::test]
async fn statuses_come_as_often_as_told() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    set(&mut client, json!({"requests": {"fault": "status", "code": 503, "retry_after": 2}, "next": 2})).await;
    for _ in 0..2 {
        let reply = client.post("/v1/chat/completions", &stream()).await;
        assert_eq!((reply.status.as_u16(), &reply.headers["retry-after"]), (503, &"2".parse().unwrap()));
        assert_eq!(reply.json()["error"]["code"], 503);
    }
    assert_eq!(client.post("/v1/chat/completions", &chat("Hello")).await.status, 200);
    assert_eq!(client.get("/emulator/faults").await.json()["requests"], Value::Null);
}

#[tokio::test]
async fn a_stream_can_begin_with_an_error() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    set(&mut client, json!({"requests": {"fault": "error_event", "code": 500}})).await;
    let reply = client.stream("/v1/chat/completions", &stream()).await;
    assert_eq!(reply.status, 200);
    let events = reply.rest().await;
    assert_eq!(events[0].json()["error"]["code"], 500);
    assert_eq!(events[1].data, "[DONE]");
    assert_eq!(client.post("/v1/chat/completions", &chat("Hello")).await.status, 500);
    client.send(Method::DELETE, "/emulator/faults", Default::default()).await;
    assert_eq!(client.post("/v1/chat/completions", &chat("Hello")).await.status, 200);
}

#[tokio::test]
async fn a_stream_can_break_after_some_tokens() {
    let engine = engine();
    let mut control = Client::new(&engine).await;
    for tokens in [0, 3] {
        set(&mut control, json!({"requests": {"fault": "die_after_tokens", "tokens": tokens}})).await;
        let broken = Client::new(&engine).await.stream("/v1/chat/completions", &stream()).await;
        assert_eq!(broken.status, 200);
        let events = broken.until_broken().await;
        let words = events.iter().filter(|event| {
            event.json()["choices"][0]["delta"]["content"].as_str().is_some_and(|content| !content.is_empty())
        });
        assert_eq!(words.count(), tokens);
        let mut client = Client::new(&engine).await;
        assert!(client.begin(post("/v1/chat/completions", &chat("Hello"))).await.is_err());
    }
    eventually("the release of its blocks", || engine.statistics().used_blocks == 0).await;
}

#[tokio::test]
async fn requests_can_hang_before_and_after_the_head() {
    let engine = engine();
    let mut control = Client::new(&engine).await;
    set(&mut control, json!({"requests": {"fault": "hang_before_head"}})).await;
    let mut client = Client::new(&engine).await;
    let begun = client.begin(post("/v1/chat/completions", &stream()));
    assert!(tokio::time::timeout(Duration::from_millis(50), begun).await.is_err());

    set(&mut control, json!({"requests": {"fault": "hang_after_head"}})).await;
    let whole = Client::new(&engine).await.begin(post("/v1/chat/completions", &chat("Hello"))).await.unwrap();
    assert_eq!(whole.headers()["content-type"], "application/json");
    let mut hanging = Client::new(&engine).await.stream("/v1/chat/completions", &stream()).await;
    assert_eq!(hanging.status, 200);
    assert!(tokio::time::timeout(Duration::from_millis(50), hanging.next()).await.is_err());
}

#[tokio::test]
async fn health_can_fail_and_hang() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    assert_eq!(client.get("/health").await.status, 200);
    set(&mut client, json!({"health": "failing"})).await;
    assert_eq!(client.get("/ping").await.status, 503);
    set(&mut client, json!({"health": "hanging"})).await;
    let request = http::Request::get("/health").body(Default::default()).unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(50), client.begin(request)).await.is_err());
}

#[tokio::test]
async fn connections_can_be_refused_for_a_while() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    set(&mut client, json!({"refuse_connections": true})).await;
    assert!(Client::connect(&engine).await.is_err());
    assert_eq!(client.post("/v1/chat/completions", &chat("Hello")).await.status, 200);
    engine.set_faults(serde_json::from_value(json!({"refuse_connections": true, "for_ms": 3_000})).unwrap()).await;
    assert!(Client::connect(&engine).await.is_err());
    let deadline = tokio::time::Instant::now() + crate::client::PATIENCE;
    while Client::connect(&engine).await.is_err() {
        assert!(tokio::time::Instant::now() < deadline, "connections are refused for ever");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn the_engine_can_be_slowed_down() {
    let slow: Faults = serde_json::from_value(json!({"slow_factor": 1000.0})).unwrap();
    let engine = start(EmulatorConfig { faults: slow, ..fast() }).unwrap();
    let mut client = Client::new(&engine).await;
    let begun = client.begin(post("/v1/chat/completions", &chat("Hello")));
    assert!(tokio::time::timeout(Duration::from_millis(50), begun).await.is_err());
    engine.set_faults(Faults::default()).await;
    let mut client = Client::new(&engine).await;
    assert_eq!(client.post("/v1/chat/completions", &chat("Hello")).await.status, 200);
}

#[tokio::test]
async fn unknown_faults_are_refused() {
    let engine = engine();
    let reply = Client::new(&engine).await.post("/emulator/faults", &json!({"explode": true})).await;
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("explode"));
}
