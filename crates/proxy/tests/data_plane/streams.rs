//! Streams that break, stall or are not taken.

use std::time::Duration;

use crate::client::{chat, post};
use crate::origin::{END, EVENTS, Origin, Step, chunk, json};
use crate::router::Router;

const EVENT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";

async fn broken_off(begun: &str, end: Step) -> Origin {
    let steps = vec![Step::Send(begun.as_bytes().to_vec()), end];
    Origin::start(move |_| steps.clone()).await
}

#[tokio::test]
async fn a_truncated_stream_ends_with_an_error_event_and_done() {
    let origin = broken_off(&(EVENTS.to_owned() + &chunk(EVENT)), Step::Close).await;
    let router = Router::before(&[&origin], "");
    let answer = router.ask(chat("x")).await;
    assert!(answer.complete);
    let text = answer.text();
    let rest = text.strip_prefix(EVENT).expect("what came is passed on");
    assert!(rest.starts_with("data: {\"error\":{") && rest.ends_with("}}\n\ndata: [DONE]\n\n"), "{rest}");
    assert_eq!(rest.matches("\n\n").count(), 2);
    router.counts("isotherm_upstream_errors_total", &["truncated"], 1.0).await;
}

#[tokio::test]
async fn an_event_that_broke_off_is_ended_before_the_error() {
    let origin = broken_off(&(EVENTS.to_owned() + &chunk(EVENT) + &chunk("data: {\"cho")), Step::Close).await;
    let router = Router::before(&[&origin], "");
    let text = router.ask(chat("x")).await.text();
    assert!(text.contains("data: {\"cho\n\ndata: {\"error\":{"), "{text}");
}

#[tokio::test]
async fn anthropics_streams_end_with_anthropics_error_event() {
    let begun = "event: message_start\ndata: {\"type\":\"message_start\"}\n\n";
    let origin = broken_off(&(EVENTS.to_owned() + &chunk(begun)), Step::Close).await;
    let router = Router::before(&[&origin], "");
    let answer = router.ask(post("/v1/messages", r#"{"messages":[{"role":"user","content":"x"}]}"#)).await;
    let text = answer.text();
    let rest = text.strip_prefix(begun).unwrap();
    assert!(rest.starts_with("event: error\ndata: {") && rest.contains(r#""type":"api_error""#), "{rest}");
    assert!(!rest.contains("[DONE]"));
}

#[tokio::test]
async fn a_stream_that_has_said_done_is_whole_even_if_its_framing_is_not() {
    let events = format!("{EVENT}data: [DONE]\n\n");
    let origin = broken_off(&(EVENTS.to_owned() + &chunk(&events)), Step::Close).await;
    let router = Router::before(&[&origin], "");
    let answer = router.ask(chat("x")).await;
    assert_eq!((answer.complete, answer.text()), (true, events));
}

#[tokio::test]
async fn any_other_truncated_body_breaks_the_connection() {
    for begun in [
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"a\":",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a\":\r\nnonsense",
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100\r\n\r\ndata: 1\n\n",
    ] {
        let origin = broken_off(begun, Step::Close).await;
        let router = Router::before(&[&origin], "");
        let answer = router.ask(chat("x")).await;
        assert!(!answer.complete, "{begun:?} came whole: {answer:?}");
    }
}

#[tokio::test]
async fn a_client_that_cannot_tell_the_end_is_reset() {
    let begun =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n";
    let origin = broken_off(begun, Step::Close).await;
    let router = Router::before(&[&origin], "");
    let mut client = router.connect().await;
    client.send("POST /invocations HTTP/1.0\r\ncontent-length: 2\r\n\r\n{}").await;
    let mut all = Vec::new();
    let ended = tokio::io::AsyncReadExt::read_to_end(&mut client.stream, &mut all).await;
    assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_stream_that_stalls_ends_with_an_error_event() {
    let origin = broken_off(&(EVENTS.to_owned() + &chunk(EVENT)), Step::Hang).await;
    let router = Router::before(&[&origin], "timeouts: { idle: 100ms }\n");
    let answer = router.ask(chat("x")).await;
    let text = answer.text();
    assert!(answer.complete && text.starts_with(EVENT) && text.contains(r#""code":"gateway_timeout""#), "{text}");
    origin.left().await;
    router.idle().await;
}

#[tokio::test]
async fn comments_keep_a_stream_alive() {
    let mut steps = vec![Step::Send((EVENTS.to_owned() + &chunk(EVENT)).into_bytes())];
    for _ in 0..5 {
        steps.extend([Step::Pause(Duration::from_millis(700)), Step::Send(chunk(": still here\n\n").into_bytes())]);
    }
    steps.push(Step::Send(END.into()));
    let origin = Origin::start(move |_| steps.clone()).await;
    let router = Router::before(&[&origin], "timeouts: { idle: 3s }\n");
    let text = router.ask(chat("x")).await.text();
    assert_eq!(text, EVENT.to_owned() + &": still here\n\n".repeat(5));
}

#[tokio::test]
async fn a_client_that_does_not_take_its_stream_holds_back_the_instance_and_is_dropped() {
    let flood = chunk(&format!("data: {}\n\n", "x".repeat(64 * 1024)));
    let steps: Vec<Step> = std::iter::once(Step::Send(EVENTS.into()))
        .chain((0..1_000).map(|_| Step::Send(flood.clone().into_bytes())))
        .collect();
    let origin = Origin::start(move |_| steps.clone()).await;
    let router = Router::before(&[&origin], "timeouts: { idle: 200ms }\n");
    let mut client = router.connect().await;
    client.send(chat("x")).await;
    client.until("data: ").await;
    // It reads no further: the router must not read 64 MiB on its behalf, nor keep the slot.
    origin.left().await;
    router.idle().await;
    router.counts("isotherm_client_disconnects_total", &["response"], 1.0).await;
}

#[tokio::test]
async fn the_total_time_out_ends_a_stream_that_goes_on() {
    let mut steps = vec![Step::Send(EVENTS.into())];
    for _ in 0..100 {
        steps.extend([Step::Send(chunk(EVENT).into_bytes()), Step::Pause(Duration::from_millis(20))]);
    }
    let origin = Origin::start(move |_| steps.clone()).await;
    let router = Router::before(&[&origin], "timeouts: { total: 1s }\n");
    let answer = router.ask(chat("x")).await;
    assert!(answer.complete && answer.text().ends_with("data: [DONE]\n\n"), "{}", answer.text());
    origin.left().await;
}

#[tokio::test]
async fn tokens_and_usage_are_noted_on_the_side() {
    let usage = r#""usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":64}}"#;
    let stream = EVENTS.to_owned()
        + &chunk("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n")
        + &chunk(EVENT)
        + &chunk(&format!("data: {{\"choices\":[],{usage}}}\n\ndata: [DONE]\n\n"))
        + END;
    let origin = Origin::answering(&stream).await;
    let router = Router::before(&[&origin], "");
    assert!(router.ask(chat("x")).await.complete);
    router.idle().await;
    let whole = Origin::answering(&json(200, &format!("{{\"choices\":[],{usage}}}"))).await;
    let other = Router::before(&[&whole], "");
    assert!(other.ask(chat("x")).await.complete);
    for (router, streamed) in [(&router, 1.0), (&other, 0.0)] {
        router.counts("isotherm_prompt_tokens_total", &[], 100.0).await;
        router.counts("isotherm_cached_tokens_total", &[], 64.0).await;
        router.counts("isotherm_output_tokens_total", &[], 7.0).await;
        router.counts("isotherm_time_to_first_token_seconds_count", &[], streamed).await;
    }
}
