//! What is refused before an instance is asked, in the caller's dialect.

use std::time::{Duration, Instant};

use crate::client::{Client, chat, get, post};
use crate::origin::{END, Origin, json};
use crate::router::Router;
use crate::stopwatch::Stopwatch;

async fn router(top: &str) -> (Origin, Router) {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], top);
    (origin, router)
}

#[tokio::test]
async fn only_the_allow_list_passes() {
    let (origin, router) = router("allow_paths: [/tokenize]\n").await;
    for target in [
        "/",
        "/metrics",
        "/sleep",
        "/wake_up",
        "/pause",
        "/reset_prefix_cache",
        "/collective_rpc",
        "/v1/load_lora_adapter",
        "//v1/chat/completions",
        "/v1/chat/completions/",
        "/V1/chat/completions",
        "/v1/chat%2Fcompletions",
        "/v1/chat/completions/../../sleep",
        "/%73leep",
        "/v1/responses/../sleep",
        "http://x/sleep",
        "http://x//v1/chat/completions",
        "/tokenize/../sleep",
    ] {
        let answer = router.ask(post(target, "{}")).await;
        assert_eq!(answer.status, 404, "{target}");
        assert!(answer.text().contains(r#""code":"unknown_url""#), "{}", answer.text());
    }
    assert!(origin.seen().is_empty());
    assert_eq!(router.ask(post("/tokenize", "no json")).await.status, 200);
    assert_eq!(origin.seen().len(), 1);
}

#[tokio::test]
async fn a_wrong_method_is_405() {
    let (origin, router) = router("").await;
    let answer = router.ask(get("/v1/chat/completions")).await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    assert!(answer.text().contains(r#""code":"method_not_allowed""#), "{}", answer.text());
    assert_eq!(router.ask("CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n").await.status, 400);
    assert!(origin.seen().is_empty());
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_before_it_is_read_and_as_it_comes() {
    let (origin, router) = router("limits: { body: 1KiB }\n").await;
    // By its length: answered although nothing of it was sent.
    let head = "POST /v1/embeddings HTTP/1.1\r\nhost: r\r\ncontent-length: 1025\r\n\r\n";
    let answer = router.ask(head).await;
    assert_eq!(answer.status, 413);
    assert!(answer.text().contains(r#""code":"request_too_large""#), "{}", answer.text());
    // Chunked: as soon as it is too much.
    let mut client = router.connect().await;
    client.send("POST /v1/messages HTTP/1.1\r\nhost: r\r\ntransfer-encoding: chunked\r\n\r\n").await;
    client.send(format!("401\r\n{}\r\n", "x".repeat(0x401))).await;
    let answer = client.answer().await;
    assert_eq!(answer.status, 413);
    assert!(answer.text().contains(r#""type":"request_too_large""#), "Anthropic's dialect: {}", answer.text());
    // At the limit it passes.
    let body = format!(r#"{{"input":"{}"}}"#, "x".repeat(1_024 - 12));
    assert_eq!(router.ask(post("/v1/embeddings", &body)).await.status, 200);
    assert_eq!(origin.seen().len(), 1);
}

#[tokio::test]
async fn a_client_that_sends_on_after_413_still_reads_it() {
    let (_origin, router) = router("limits: { body: 1KiB }\n").await;
    let request = post("/v1/embeddings", &"x".repeat(8 << 20));
    let mut client = router.connect().await;
    client.send(&request).await;
    assert_eq!(client.answer().await.status, 413);
    assert!(client.ends().await);
}

#[tokio::test]
async fn targets_and_heads_over_their_limits_are_414_and_431() {
    let (origin, router) = router("").await;
    let answer = router.ask(get(&format!("/v1/models?{}", "x".repeat(17 << 10)))).await;
    assert_eq!(answer.status, 414);
    assert!(answer.text().contains(r#""code":"uri_too_long""#), "{}", answer.text());
    let long = format!("GET /v1/models HTTP/1.1\r\nhost: r\r\nx: {}\r\n\r\n", "y".repeat(65 << 10));
    let answer = router.ask(long).await;
    assert_eq!(answer.status, 431);
    assert!(answer.text().contains(r#""code":"headers_too_large""#), "{}", answer.text());
    // Too many lines, or far too long ones, end the parsing of the head: nobody can tell what it was to be.
    let many: String = (0..120).map(|n| format!("x-{n}: y\r\n")).collect();
    assert_eq!(router.ask(format!("GET /v1/models HTTP/1.1\r\nhost: r\r\n{many}\r\n")).await.status, 431);
    assert!(origin.seen().is_empty());
}

#[tokio::test]
async fn malformed_json_is_400_and_says_where() {
    let (origin, router) = router("").await;
    let answer = router.ask(post("/v1/chat/completions", r#"{"model": oops}"#)).await;
    assert_eq!(answer.status, 400);
    assert!(
        answer.text().contains("at byte 10") && answer.text().contains("invalid_request_error"),
        "{}",
        answer.text()
    );
    assert_eq!(router.ask(post("/v1/chat/completions", "")).await.status, 400);
    assert!(origin.seen().is_empty());
}

#[tokio::test]
async fn a_body_that_does_not_come_on_is_408_and_takes_no_slot() {
    let (origin, router) = router("timeouts: { client_body: 100ms }\n").await;
    let mut client = router.connect().await;
    client.send("POST /v1/embeddings HTTP/1.1\r\nhost: r\r\ncontent-length: 10\r\n\r\n{").await;
    assert_eq!(client.answer().await.status, 408);
    assert!(origin.seen().is_empty());
}

#[tokio::test]
async fn a_body_that_trickles_is_408_however_often_a_byte_comes() {
    let (origin, router) = router("timeouts: { client_body: 150ms }\n").await;
    let mut client = router.connect().await;
    client.send("POST /v1/embeddings HTTP/1.1\r\nhost: r\r\ncontent-length: 100000\r\n\r\n").await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(400) {
        // The router may have ended it already.
        let _ = tokio::io::AsyncWriteExt::write_all(&mut client.stream, b"x").await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(client.answer().await.status, 408);
    assert!(origin.seen().is_empty());
}

#[tokio::test]
async fn a_body_that_comes_slowly_passes_if_a_kibibyte_comes_within_each_time_out() {
    let (_origin, router) = router("timeouts: { client_body: 3s }\n").await;
    let body = format!(r#"{{"input":"{}"}}"#, "x".repeat(5_108));
    let mut client = router.connect().await;
    client.send(format!("POST /v1/embeddings HTTP/1.1\r\nhost: r\r\ncontent-length: {}\r\n\r\n", body.len())).await;
    let begun = Instant::now();
    for piece in body.as_bytes().chunks(1_024) {
        tokio::time::sleep(Duration::from_millis(700)).await;
        client.send(piece).await;
    }
    assert_eq!(client.answer().await.status, 200);
    assert!(begun.elapsed() > Duration::from_secs(3), "longer than one time-out");
}

#[tokio::test]
async fn a_badly_framed_body_is_400() {
    let (origin, router) = router("").await;
    let request = "POST /v1/embeddings HTTP/1.1\r\nhost: r\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n";
    assert_eq!(router.ask(request.to_owned() + END).await.status, 400);
    assert!(origin.seen().is_empty());
}

#[tokio::test]
async fn connections_that_say_nothing_or_half_of_it_are_closed() {
    let (_origin, router) = router("timeouts: { client_header: 150ms }\n").await;
    for begun in ["", "P", "PRI * HTTP/2.0\r\n", "GET /health HTT", "GET /health HTTP/1.1\r\nhost: r\r\nx: "] {
        let (connecting, stopwatch) = (Instant::now(), Stopwatch::start());
        let mut client = router.connect().await;
        client.send(begun).await;
        assert!(client.ends().await, "{begun:?}");
        assert!(connecting.elapsed() >= Duration::from_millis(150), "{begun:?}: {:?}", connecting.elapsed());
        assert!(stopwatch.elapsed() < Duration::from_secs(2), "{begun:?}: {:?}", stopwatch.elapsed());
    }
    // The same behind a request that was answered.
    let mut client = router.connect().await;
    client.send(get("/health")).await;
    assert_eq!(client.answer().await.status, 200);
    client.send("GET /health HTT").await;
    assert!(client.ends().await);
    // An idle connection between two requests is kept.
    let mut client = router.connect().await;
    for _ in 0..2 {
        client.send(get("/health")).await;
        assert_eq!(client.answer().await.status, 200);
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    router_is_quiet(&router, client).await;
}

async fn router_is_quiet(router: &Router, client: Client) {
    drop(client);
    router.counts("isotherm_client_connections", &[], 0.0).await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_to_be_accepted() {
    let (_origin, router) = router("limits: { connections: 1 }\n").await;
    let mut first = router.connect().await;
    first.send(get("/health")).await;
    assert_eq!(first.answer().await.status, 200);
    let mut second = router.connect().await;
    second.send(get("/health")).await;
    let early = tokio::time::timeout(Duration::from_millis(100), second.answer()).await;
    assert!(early.is_err(), "answered beyond the limit");
    drop(first);
    assert_eq!(second.answer().await.status, 200);
}

#[tokio::test]
async fn a_bad_tenant_id_is_refused_and_good_ones_separate_keys() {
    let (_origin, router) = router("").await;
    let with_id = |id: &str| {
        chat("x").replacen("host: router", &format!("host: router\r\nx-amzn-sagemaker-prefix-aware-id: {id}"), 1)
    };
    assert_eq!(router.ask(with_id(&"x".repeat(65))).await.status, 400);
    let mut keys = std::collections::HashSet::new();
    for request in [with_id("a"), with_id("b"), chat("x")] {
        keys.insert(router.ask(request).await.header("x-isotherm-key").unwrap().to_owned());
    }
    assert_eq!(keys.len(), 3);
}

#[tokio::test]
async fn a_request_that_could_be_read_in_two_ways_is_refused() {
    let (origin, router) = router("").await;
    for request in [
        "POST /v1/embeddings HTTP/1.1\r\nhost: r\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        "POST /v1/embeddings HTTP/1.1\r\nhost: r\r\ntransfer-encoding: gzip\r\n\r\n{}",
        "POST /v1/embeddings HTTP/1.0\r\nhost: r\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "GET /v1/models HTTP/1.1\r\nhost : r\r\n\r\n",
        "\0\0\0\0\r\n\r\n",
    ] {
        let mut client = router.connect().await;
        client.send(request).await;
        assert_eq!(client.answer().await.status, 400, "{request:?}");
        assert!(client.ends().await, "{request:?}");
    }
    assert!(origin.seen().is_empty());
}
