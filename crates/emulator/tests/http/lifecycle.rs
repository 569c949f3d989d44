//! Starting, stopping, HTTP/2, and the time that answers take.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use isotherm_emulator::{EmulatorConfig, StartError, start};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::client::{Client, chat, document, engine, fast, with, within};

fn slow_stream(tokens: u32) -> Value {
    with(chat("Hello"), json!({"max_tokens": tokens, "ignore_eos": true, "stream": true}))
}

#[tokio::test]
async fn a_shutdown_lets_streams_end() {
    let engine = engine();
    let address = engine.address();
    let mut client = Client::new(&engine).await;
    let stream = client.stream("/v1/chat/completions", &slow_stream(500)).await;
    let stopping = tokio::spawn(engine.shutdown(Duration::from_secs(10)));
    assert_eq!(stream.rest().await.len(), 1 + 500 + 1 + 1);
    within(stopping).await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_shutdown_does_not_wait_beyond_its_grace() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let stream = client.stream("/v1/chat/completions", &slow_stream(100_000)).await;
    within(engine.shutdown(Duration::from_millis(20))).await;
    stream.until_broken().await;
}

#[tokio::test]
async fn a_kill_breaks_streams_and_refuses_connections() {
    let engine = engine();
    let address = engine.address();
    let mut client = Client::new(&engine).await;
    let mut stream = client.stream("/v1/chat/completions", &slow_stream(100_000)).await;
    stream.next().await.unwrap();
    within(engine.kill()).await;
    stream.until_broken().await;
    assert!(TcpStream::connect(address).await.is_err());
    let again = start(EmulatorConfig { listen: address, ..fast() }).unwrap();
    assert_eq!(again.address(), address);
}

#[tokio::test]
async fn emulators_share_nothing() {
    let (one, two) = (engine(), engine());
    let question = chat(&document(100));
    for engine in [&one, &two] {
        let reply = Client::new(engine).await.post("/v1/chat/completions", &question).await.json();
        assert_eq!(reply["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    }
    within(one.kill()).await;
    assert_eq!(Client::new(&two).await.post("/v1/chat/completions", &question).await.status, 200);
}

#[tokio::test]
async fn a_taken_port_and_a_bad_setting_are_told() {
    let engine = engine();
    let taken = start(EmulatorConfig { listen: engine.address(), ..fast() }).unwrap_err();
    assert!(matches!(taken, StartError::Bind { .. }), "{taken}");
    let bad = start(EmulatorConfig { speed: 0.0, ..fast() }).unwrap_err();
    assert!(bad.to_string().contains("speed is 0"), "{bad}");
}

#[tokio::test]
async fn http2_is_served_on_the_same_port() {
    let engine = engine();
    let stream = TcpStream::connect(engine.address()).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let body = Full::new(Bytes::from(slow_stream(5).to_string()));
    let request = http::Request::post(format!("{}/v1/chat/completions", engine.base_url())).body(body).unwrap();
    let response = within(sender.send_request(request)).await.unwrap();
    assert_eq!(response.version(), http::Version::HTTP_2);
    let body = within(response.into_body().collect()).await.unwrap().to_bytes();
    assert!(body.ends_with(b"data: [DONE]\n\n"));
}

#[tokio::test]
async fn an_answer_takes_its_model_time_divided_by_the_speed() {
    let engine = start(EmulatorConfig { speed: 20.0, ..fast() }).unwrap();
    let mut client = Client::new(&engine).await;
    let began = Instant::now();
    let request = with(chat("Hello"), json!({"max_tokens": 400, "ignore_eos": true}));
    client.post("/v1/chat/completions", &request).await;
    let took = began.elapsed();
    let model = engine.statistics().busy;
    assert!(took >= model.div_f64(20.0), "{took:?} for {model:?}");
    // Errors do not add up over the steps: what is beyond the model's time is overhead and lag of one step.
    let beyond = took - model.div_f64(20.0);
    assert!(beyond < Duration::from_millis(2) + engine.lag().max * 2 + took / 5, "{beyond:?} beyond {model:?}");
}
