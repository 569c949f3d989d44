//! What an engine does wrong, and what a client sees of it.

use std::time::Duration;

use isotherm_tests::{
    Client, Engines, Stopwatch, chat, document, engine_requests, eventually, set_faults, streamed_chat,
};
use serde_json::json;

use crate::serve;

#[tokio::test]
async fn an_error_as_first_event_becomes_its_real_status() {
    let engines = Engines::start(1, &["--speed", "100"]);
    let router = serve(&engines, &[]);
    set_faults(&engines.urls()[0], &json!({"requests": {"fault": "error_event", "code": 400}, "next": 1})).await;
    let client = Client::new(router.url());
    let answer = client.post("/v1/chat/completions", &streamed_chat("A", "question?", 8)).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(answer.json()["error"]["message"].is_string());
}

#[tokio::test]
async fn an_instance_that_fails_is_passed_over_for_the_next() {
    let engines = Engines::start(3, &["--speed", "100"]);
    let router = serve(&engines, &[]);
    let client = Client::new(router.url());
    let document = document(1, 1_200);
    let home = client.post("/v1/chat/completions", &chat(&document, "First?")).await.ok().instance();
    let index = (0..3).find(|index| Engines::id(*index) == home).expect("one of the engines");
    let fault = json!({"requests": {"fault": "status", "code": 503}, "next": 1});
    set_faults(&engines.urls()[index], &fault).await;
    let answer = client.post("/v1/chat/completions", &chat(&document, "Second?")).await.ok();
    assert_ne!(answer.instance(), home);
    assert_eq!(answer.header("x-isotherm-reason"), "retry");
    let back = client.post("/v1/chat/completions", &chat(&document, "Third?")).await.ok();
    assert_eq!(back.instance(), home);
}

#[tokio::test]
async fn a_stream_that_dies_ends_with_an_error_event_and_is_never_sent_again() {
    let engines = Engines::start(2, &["--speed", "100"]);
    let router = serve(&engines, &[]);
    for url in engines.urls() {
        set_faults(&url, &json!({"requests": {"fault": "die_after_tokens", "tokens": 3}})).await;
    }
    let body = streamed_chat("A", "question?", 50);
    let stream = Client::new(router.url()).open("/v1/chat/completions", &body).await.expect("a stream");
    assert_eq!(stream.status, 200);
    let text = stream.rest().await.expect("a stream that ends as clients expect");
    let events: Vec<&str> = text.split("\n\n").filter(|event| !event.is_empty()).collect();
    assert_eq!(events.last(), Some(&"data: [DONE]"));
    assert!(events[events.len() - 2].starts_with("data: {\"error\""), "{text}");
    let mut upstream = 0;
    for url in engines.urls() {
        upstream += engine_requests(&url).await.len();
    }
    assert_eq!(upstream, 1);
}

#[tokio::test]
async fn a_client_that_leaves_during_prefill_frees_the_engine() {
    let engines = Engines::start(1, &["--speed", "0.05"]);
    let router = serve(&engines, &[]);
    let client = Client::new(router.url());
    let body = chat(&document(1, 8_000), "A prefill of many seconds?");
    let waiting = tokio::spawn(async move { client.try_post("/v1/chat/completions", &body).await });
    let url = &engines.urls()[0];
    let asked = async || engine_requests(url).await.into_iter().find(|request| request.path == "/v1/chat/completions");
    eventually("the engine has the request", Duration::from_secs(10), asked).await;
    waiting.abort();
    let left = eventually("the engine is left", Duration::from_secs(1), async || {
        asked().await.filter(|request| request.ended_ms.is_some())
    })
    .await;
    assert!(left.aborted, "{left:?}");
}

#[tokio::test]
async fn without_a_living_instance_the_answer_is_503_at_once() {
    let mut engines = Engines::start(2, &["--speed", "100"]);
    let router = serve(&engines, &[]);
    let client = Client::new(router.url());
    let _ = client.post("/v1/chat/completions", &chat("A", "question?")).await.ok();
    engines.kill(0);
    engines.kill(1);
    // The first to notice may be this request; from the second on the router knows.
    let _ = client.post("/v1/chat/completions", &chat("A", "question?")).await;
    let asked = Stopwatch::start();
    let answer = client.post("/v1/chat/completions", &chat("A", "question?")).await;
    assert_eq!(answer.status, 503);
    assert!(asked.elapsed() < Duration::from_millis(500), "after {:?}", asked.elapsed());
    assert!(answer.headers.contains_key("retry-after"));
    assert!(answer.json()["error"]["message"].is_string());
    assert_eq!(client.get("/ping").await.status, 503);
    engines.restart(0);
    eventually("it serves again", Duration::from_secs(2), async || {
        let answer = client.post("/v1/chat/completions", &chat("A", "question?")).await;
        (answer.status == 200).then_some(())
    })
    .await;
}
