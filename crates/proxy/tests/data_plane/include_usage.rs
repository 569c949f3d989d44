//! The usage that the router asks for in its client's place, and keeps to itself.

use crate::client::{Client, post};
use crate::origin::{END, EVENTS, Origin, Step, chunk, json};
use crate::router::Router;

const ON: &str = "inject_include_usage: true\n";
const PLAIN: &str = r#"{ "messages":[{"role":"user","content":"x"}], "stream": true,"temperature":1e-1 }"#;
const SPLICED: &str = r#"{"stream_options":{"include_usage":true}, "messages":[{"role":"user","content":"x"}], "stream": true,"temperature":1e-1 }"#;
const DELTA: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\n";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":64}}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

async fn ask(router: &Router, body: &str) -> (String, bool) {
    let answer = router.ask(post("/v1/chat/completions", body)).await;
    (answer.text(), answer.complete)
}

fn stream(events: &[&str]) -> String {
    EVENTS.to_owned() + &events.iter().map(|event| chunk(event)).collect::<String>() + END
}

#[tokio::test]
async fn it_is_asked_for_without_touching_other_bytes_and_taken_out_again() {
    for events in [vec![DELTA, USAGE, DONE], vec![&[DELTA, USAGE, DONE].concat()]] {
        let origin = Origin::answering(&stream(&events)).await;
        let router = Router::before(&[&origin], ON);
        assert_eq!(ask(&router, PLAIN).await, ([DELTA, DONE].concat(), true));
        assert_eq!(String::from_utf8(origin.seen()[0].body.clone()).unwrap(), SPLICED);
        router.idle().await;
        router.counts("isotherm_cached_tokens_total", &[], 64.0).await;
    }
}

#[tokio::test]
async fn however_the_stream_is_cut_nothing_else_is_missing() {
    let answer = stream(&[": hello\n\n", DELTA, USAGE, DONE]);
    let origin = Origin::start(move |_| vec![Step::Drip(answer.clone().into_bytes())]).await;
    let router = Router::before(&[&origin], ON);
    assert_eq!(ask(&router, PLAIN).await, ([": hello\n\n", DELTA, DONE].concat(), true));
}

#[tokio::test]
async fn a_stream_with_a_length_leaves_without_one() {
    let events = [DELTA, USAGE, DONE].concat();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n", events.len());
    let origin = Origin::answering(&(head + &events)).await;
    let router = Router::before(&[&origin], ON);
    assert_eq!(ask(&router, PLAIN).await, ([DELTA, DONE].concat(), true));
}

#[tokio::test]
async fn who_asks_gets_it_and_where_it_is_off_nothing_changes() {
    let asking =
        r#"{"messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true}}"#;
    let continuous =
        r#"{"messages":[],"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#;
    for (top, body) in [(ON, asking), (ON, continuous), ("", asking), ("", continuous), ("", PLAIN)] {
        let origin = Origin::answering(&stream(&[DELTA, USAGE, DONE])).await;
        let router = Router::before(&[&origin], top);
        assert_eq!(ask(&router, body).await, ([DELTA, USAGE, DONE].concat(), true));
        assert_eq!(origin.seen()[0].body, body.as_bytes());
    }
}

#[tokio::test]
async fn what_is_no_stream_passes_as_it_is() {
    let body = r#"{"messages":[{"role":"user","content":"x"}]}"#;
    let answer = r#"{"choices":[],"usage":{"prompt_tokens":5}}"#;
    let origin = Origin::answering(&json(200, answer)).await;
    let router = Router::before(&[&origin], ON);
    assert_eq!(ask(&router, body).await, (answer.to_owned(), true));
    assert_eq!(origin.seen()[0].body, body.as_bytes());
    // An engine may answer a wish for a stream with an error, or with a whole answer.
    assert_eq!(ask(&router, PLAIN).await, (answer.to_owned(), true));
}

#[tokio::test]
async fn what_was_held_back_of_a_broken_stream_comes_before_the_error() {
    let begun = EVENTS.to_owned() + &chunk(DELTA) + &chunk("data: {\"cho");
    let origin = Origin::start(move |_| vec![Step::Send(begun.clone().into_bytes()), Step::Close]).await;
    let router = Router::before(&[&origin], ON);
    let (text, complete) = ask(&router, PLAIN).await;
    assert!(complete && text.starts_with(&(DELTA.to_owned() + "data: {\"cho\n\ndata: {\"error\":{")), "{text}");
}

#[tokio::test]
async fn an_end_without_a_blank_line_passes() {
    let origin = Origin::answering(&stream(&[DELTA, "data: [DONE]"])).await;
    let router = Router::before(&[&origin], ON);
    assert_eq!(ask(&router, PLAIN).await, (DELTA.to_owned() + "data: [DONE]", true));
}

#[tokio::test]
async fn every_event_passes_as_soon_as_it_is_whole() {
    let leave = std::sync::Arc::new(tokio::sync::Notify::new());
    let steps = [
        Step::Send((EVENTS.to_owned() + &chunk(DELTA)).into_bytes()),
        Step::Wait(std::sync::Arc::clone(&leave)),
        Step::Send((chunk(USAGE) + &chunk(DONE) + END).into_bytes()),
    ];
    let origin = Origin::start(move |_| steps.to_vec()).await;
    let router = Router::before(&[&origin], ON);
    let mut client: Client = router.connect().await;
    client.send(post("/v1/chat/completions", PLAIN)).await;
    client.until("\"hi\"").await;
    leave.notify_one();
    assert_eq!(client.answer().await.text(), [DELTA, DONE].concat());
}
