//! Clients that speak HTTP/2 without asking, as gateways in front of a router do.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::client::PATIENCE;
use crate::origin::{END, EVENTS, Origin, Step, chunk, json};
use crate::router::Router;
use crate::stopwatch::Stopwatch;

struct Client {
    sender: SendRequest<Full<Bytes>>,
    /// A second handle on the socket, by which it is closed under the protocol.
    socket: std::net::TcpStream,
}

async fn connect(router: &Router) -> Client {
    let stream = std::net::TcpStream::connect(router.address).unwrap();
    stream.set_nonblocking(true).unwrap();
    let socket = stream.try_clone().unwrap();
    let io = TokioIo::new(tokio::net::TcpStream::from_std(stream).unwrap());
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    Client { sender, socket }
}

fn chat(text: &str) -> Request<Full<Bytes>> {
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let uri = "http://router/v1/chat/completions";
    Request::post(uri).header("x-custom", "1").body(Full::new(Bytes::from(body))).unwrap()
}

impl Client {
    async fn ask(&mut self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        tokio::time::timeout(PATIENCE, self.sender.send_request(request)).await.expect("no answer").unwrap()
    }
}

async fn text(response: Response<Incoming>) -> String {
    let body = tokio::time::timeout(PATIENCE, response.into_body().collect()).await.expect("no end").unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn requests_and_streams_pass() {
    let stream = EVENTS.to_owned() + &chunk("data: 1\n\n") + &chunk("data: [DONE]\n\n") + END;
    let origin = Origin::answering(&stream).await;
    let router = Router::before(&[&origin], "");
    let mut client = connect(&router).await;
    for _ in 0..3 {
        let response = client.ask(chat("x")).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["x-isotherm-instance"], "a");
        assert_eq!(text(response).await, "data: 1\n\ndata: [DONE]\n\n");
    }
    let seen = &origin.seen()[0];
    assert_eq!(seen.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(seen.header("host"), Some(origin.address.to_string()));
    assert_eq!(seen.header("x-custom").as_deref(), Some("1"));
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn many_streams_of_one_connection_are_served_at_once() {
    let steps = vec![Step::Pause(Duration::from_millis(100)), Step::Send(json(200, "{}").into_bytes())];
    let origin = Origin::start(move |_| steps.clone()).await;
    let router = Router::before(&[&origin], "");
    let client = connect(&router).await;
    let started = Stopwatch::start();
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..50 {
        let mut sender = client.sender.clone();
        asking.spawn(async move { sender.send_request(chat(&number.to_string())).await.unwrap().status() });
    }
    while let Some(status) = asking.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(origin.seen().len(), 50);
}

#[tokio::test]
async fn a_stream_that_is_reset_frees_its_instance_and_leaves_the_others() {
    let begun = EVENTS.to_owned() + &chunk("data: 1\n\n");
    let origin = Origin::start(move |seen| match seen.body.windows(4).any(|four| four == b"stay") {
        true => vec![Step::Send(json(200, "{}").into_bytes())],
        false => vec![Step::Send(begun.as_bytes().to_vec()), Step::Hang],
    })
    .await;
    let router = Router::before(&[&origin], "");
    let mut client = connect(&router).await;
    let response = client.ask(chat("leave")).await;
    let gone = Stopwatch::start();
    drop(response);
    origin.left().await;
    assert!(gone.elapsed() < Duration::from_secs(1), "{:?}", gone.elapsed());
    router.idle().await;
    router.counts("isotherm_client_disconnects_total", &["response"], 1.0).await;
    assert_eq!(client.ask(chat("stay")).await.status(), 200);
}

#[tokio::test]
async fn a_stream_that_is_reset_before_its_answer_frees_its_instance() {
    let origin = Origin::start(|_| vec![Step::Hang]).await;
    let router = Router::before(&[&origin], "");
    let mut client = connect(&router).await;
    let asking = client.sender.send_request(chat("x"));
    let asking = tokio::spawn(asking);
    origin.asked(1).await;
    let gone = Stopwatch::start();
    asking.abort();
    origin.left().await;
    assert!(gone.elapsed() < Duration::from_secs(1), "{:?}", gone.elapsed());
    router.idle().await;
    router.counts("isotherm_client_disconnects_total", &["prefill"], 1.0).await;
}

#[tokio::test]
async fn a_connection_that_ends_frees_all_its_instances() {
    let origin = Origin::start(|_| vec![Step::Hang]).await;
    let router = Router::before(&[&origin], "");
    let client = connect(&router).await;
    for number in 0..5 {
        let mut sender = client.sender.clone();
        tokio::spawn(async move { sender.send_request(chat(&number.to_string())).await.map(drop) });
    }
    origin.asked(5).await;
    client.socket.shutdown(std::net::Shutdown::Both).unwrap();
    router.idle().await;
    router.counts("isotherm_client_disconnects_total", &["prefill"], 5.0).await;
}

#[tokio::test]
async fn a_truncated_body_resets_its_stream_only() {
    let begun =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n";
    let steps = vec![Step::Send(begun.as_bytes().to_vec()), Step::Close];
    let origin = Origin::start(move |_| steps.clone()).await;
    let router = Router::before(&[&origin], "");
    let mut client = connect(&router).await;
    for _ in 0..2 {
        let response = client.ask(chat("x")).await;
        assert_eq!(response.status(), 200);
        assert!(response.into_body().collect().await.is_err());
    }
}

#[tokio::test]
async fn large_uploads_pass_and_too_large_ones_are_413() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "limits: { body: 8MiB }\n");
    let mut client = connect(&router).await;
    assert_eq!(client.ask(chat(&"x".repeat(6 << 20))).await.status(), 200);
    assert!(origin.seen()[0].body.len() > 6 << 20);
    assert_eq!(client.ask(chat(&"x".repeat(9 << 20))).await.status(), 413);
}

#[tokio::test]
async fn a_client_that_takes_nothing_does_not_keep_its_instance() {
    let flood = chunk(&format!("data: {}\n\n", "x".repeat(64 * 1024)));
    let steps: Vec<Step> = std::iter::once(Step::Send(EVENTS.into()))
        .chain((0..1_000).map(|_| Step::Send(flood.clone().into_bytes())))
        .collect();
    let origin = Origin::start(move |_| steps.clone()).await;
    let router = Router::before(&[&origin], "timeouts: { idle: 200ms }\n");
    let mut client = connect(&router).await;
    // Held, and never read.
    let _response = client.ask(chat("x")).await;
    origin.left().await;
    router.idle().await;
}
