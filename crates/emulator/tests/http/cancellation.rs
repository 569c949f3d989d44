//! A client that leaves takes its request out of the engine.

use serde_json::{Value, json};

use crate::client::{Client, chat, engine, eventually, post, with};

/// Much longer than any test lasts.
fn endless() -> Value {
    with(chat("Never stop."), json!({"max_tokens": 100_000, "ignore_eos": true}))
}

#[tokio::test]
async fn leaving_a_stream_aborts_it() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let mut stream = client.stream("/v1/chat/completions", &with(endless(), json!({"stream": true}))).await;
    stream.next().await.unwrap();
    assert_eq!(engine.statistics().running, 1);
    client.leave();
    drop(stream);
    eventually("the abort", || engine.statistics().aborted == 1).await;
    eventually("the release of its blocks", || engine.statistics().used_blocks == 0).await;
    assert!(engine.statistics().generation_tokens < 50_000);
}

#[tokio::test]
async fn leaving_before_a_whole_answer_aborts_it() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let request = post("/v1/chat/completions", &endless());
    let waiting = tokio::spawn(async move {
        let _ = client.begin(request).await;
        client.leave();
    });
    eventually("the request's arrival", || engine.statistics().running == 1).await;
    waiting.abort();
    eventually("the abort", || engine.statistics().aborted == 1).await;
    assert_eq!(engine.statistics().running, 0);
}

#[tokio::test]
async fn the_other_streams_go_on() {
    let engine = engine();
    let mut leaving = Client::new(&engine).await;
    let mut staying = Client::new(&engine).await;
    let mut left = leaving.stream("/v1/chat/completions", &with(endless(), json!({"stream": true}))).await;
    let request = with(chat("Stay"), json!({"max_tokens": 300, "ignore_eos": true, "stream": true}));
    let stayed = staying.stream("/v1/chat/completions", &request).await;
    left.next().await.unwrap();
    leaving.leave();
    drop(left);
    assert_eq!(stayed.rest().await.len(), 1 + 300 + 1 + 1);
}
