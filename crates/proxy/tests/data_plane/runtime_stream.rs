//! `POST /endpoints/{name}/invocations-response-stream`: frames, and what becomes of failures before and after the
//! first byte.

use std::sync::Arc;

use isotherm_wire::eventstream::{Frame, decode};
use serde_json::Value;
use tokio::sync::Notify;

use crate::client::{Answer, post};
use crate::origin::{END, EVENTS, Origin, Step, chunk, json};
use crate::router::Router;

const EVENT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";

fn stream(lines: &str) -> String {
    let request = post("/endpoints/chat/invocations-response-stream", r#"{"stream":true}"#);
    request.replacen("host: router", &format!("host: router{lines}"), 1)
}

fn frames(mut bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    while let Some((frame, length)) = decode(bytes).unwrap() {
        frames.push(frame);
        bytes = &bytes[length..];
    }
    assert!(bytes.is_empty(), "a frame is not whole");
    frames
}

/// The payload of all parts, and the exception behind them.
fn told(answer: &Answer) -> (String, Option<(String, Value)>) {
    let mut frames = frames(&answer.body);
    let exception = frames.pop_if(|frame| frame.header(":message-type") == Some("exception")).map(|frame| {
        (frame.header(":exception-type").unwrap().to_owned(), serde_json::from_slice(frame.payload).unwrap())
    });
    assert!(frames.iter().all(|frame| frame.header(":event-type") == Some("PayloadPart")));
    let payload = frames.iter().flat_map(|frame| frame.payload.to_vec()).collect();
    (String::from_utf8(payload).unwrap(), exception)
}

async fn broken_off(begun: &str, end: Step) -> Origin {
    let steps = vec![Step::Send(begun.as_bytes().to_vec()), end];
    Origin::start(move |_| steps.clone()).await
}

#[tokio::test]
async fn every_chunk_of_the_container_is_a_frame_as_it_comes() {
    let leave = Arc::new(Notify::new());
    let steps = vec![
        Step::Send((EVENTS.to_owned() + &chunk(EVENT)).into()),
        Step::Wait(Arc::clone(&leave)),
        Step::Send((chunk("data: [DONE]\n\n") + END).into()),
    ];
    let origin = Origin::start(move |_| steps.clone()).await;
    let router = Router::before(&[&origin], "");
    let mut client = router.connect().await;
    client.send(stream("\r\naccept: a/b\r\nx-amzn-sagemaker-accept: c/d")).await;
    client.until("PayloadPart").await;
    leave.notify_one();
    let answer = client.answer().await;
    assert!(answer.complete && answer.status == 200);
    assert_eq!(answer.header("content-type"), Some("application/vnd.amazon.eventstream"));
    assert_eq!(answer.header("x-amzn-sagemaker-content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(answer.header("x-amzn-invoked-production-variant"), Some("AllTraffic"));
    assert_eq!(frames(&answer.body).len(), 2);
    assert_eq!(told(&answer), (format!("{EVENT}data: [DONE]\n\n"), None));
    let seen = &origin.seen()[0];
    assert_eq!((seen.line.as_str(), seen.header("accept").as_deref()), ("POST /invocations HTTP/1.1", Some("c/d")));
    router.idle().await;
    router.counts("isotherm_time_to_first_token_seconds_count", &[], 1.0).await;
}

#[tokio::test]
async fn a_container_that_does_not_stream_is_framed_too() {
    let origin = Origin::answering(&json(200, r#"{"a":1}"#)).await;
    let router = Router::before(&[&origin], "");
    let answer = router.ask(stream("")).await;
    assert_eq!(answer.header("x-amzn-sagemaker-content-type"), Some("application/json"));
    assert_eq!(answer.header("content-length"), None);
    assert_eq!(told(&answer), (r#"{"a":1}"#.into(), None));
}

#[tokio::test]
async fn an_error_before_the_first_byte_is_a_model_error() {
    let error = r#"{"error":{"message":"too long","code":400}}"#;
    let as_event = EVENTS.to_owned() + &chunk(&format!("data: {error}\n\n")) + END;
    for answer in [json(400, error), as_event] {
        let origin = Origin::answering(&answer).await;
        let router = Router::before(&[&origin], "");
        let answer = router.ask(stream("")).await;
        assert_eq!((answer.status, answer.header("x-amzn-errortype")), (424, Some("ModelError")));
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((body["OriginalStatusCode"].as_u64(), body["OriginalMessage"].as_str()), (Some(400), Some(error)));
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_ends_with_an_exception_frame() {
    for begun in [
        EVENTS.to_owned() + &chunk(EVENT),
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{EVENT}"),
    ] {
        let origin = broken_off(&begun, Step::Close).await;
        let router = Router::before(&[&origin], "");
        let answer = router.ask(stream("")).await;
        assert!(answer.complete);
        let (payload, exception) = told(&answer);
        let (kind, body) = exception.unwrap();
        assert_eq!(
            (payload.as_str(), kind.as_str(), &body["ErrorCode"]),
            (EVENT, "ModelStreamError", &"StreamBroken".into())
        );
        router.counts("isotherm_invocation_faults_total", &["mid_stream"], 1.0).await;
        router.idle().await;
    }
}

#[tokio::test]
async fn a_stream_that_takes_too_long_says_so() {
    let origin = broken_off(&(EVENTS.to_owned() + &chunk(EVENT)), Step::Hang).await;
    let router = Router::before(&[&origin], "timeouts: { invocation_stream: 1s, invocation: 1ms }\n");
    let (payload, exception) = told(&router.ask(stream("")).await);
    assert_eq!((payload.as_str(), &exception.unwrap().1["ErrorCode"]), (EVENT, &"ModelInvocationTimeExceeded".into()));
    origin.left().await;
}

#[tokio::test]
async fn no_session_begins_with_a_stream() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let answer = router.ask(stream("\r\nx-amzn-sagemaker-session-id: NEW_SESSION")).await;
    assert_eq!((answer.status, answer.header("x-amzn-errortype")), (400, Some("ValidationError")));
    assert!(answer.text().contains("'sessionId'") && origin.seen().is_empty());
}

#[tokio::test]
async fn a_client_that_leaves_its_stream_frees_the_container() {
    let origin = broken_off(&(EVENTS.to_owned() + &chunk(EVENT)), Step::Hang).await;
    let router = Router::before(&[&origin], "");
    let mut client = router.connect().await;
    client.send(stream("")).await;
    client.until("PayloadPart").await;
    drop(client);
    origin.left().await;
    router.idle().await;
}
