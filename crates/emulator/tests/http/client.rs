//! A small HTTP client over one connection, and an engine that is fast enough for tests.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use isotherm_emulator::{EmulatorConfig, RunningEmulator, start};
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// No test waits longer than this for one thing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Two hundred times faster than the real engine: a decode step lasts some 60 µs.
pub(crate) fn fast() -> EmulatorConfig {
    EmulatorConfig { model: "m".into(), speed: 200.0, ..EmulatorConfig::default() }
}

pub(crate) fn engine() -> RunningEmulator {
    start(fast()).unwrap()
}

pub(crate) fn chat(text: &str) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 8})
}

/// `base` with the fields of `more`.
pub(crate) fn with(mut base: Value, more: Value) -> Value {
    base.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    base
}

/// A text of many distinct words.
pub(crate) fn document(words: usize) -> String {
    (0..words).map(|word| format!("word{word} ")).collect()
}

pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    connection: tokio::task::JoinHandle<hyper::Result<()>>,
}

impl Client {
    pub(crate) async fn new(engine: &RunningEmulator) -> Self {
        Self::connect(engine).await.unwrap()
    }

    pub(crate) async fn connect(engine: &RunningEmulator) -> std::io::Result<Self> {
        let stream = TcpStream::connect(engine.address()).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        Ok(Self { sender, connection: tokio::spawn(connection) })
    }

    pub(crate) async fn get(&mut self, path: &str) -> Whole {
        self.send(Method::GET, path, Bytes::new()).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &Value) -> Whole {
        self.send(Method::POST, path, Bytes::from(body.to_string())).await
    }

    pub(crate) async fn send(&mut self, method: Method, path: &str, body: Bytes) -> Whole {
        let request = Request::builder().method(method).uri(path).body(Full::new(body)).unwrap();
        self.request(request).await
    }

    pub(crate) async fn request(&mut self, request: Request<Full<Bytes>>) -> Whole {
        let response = self.begin(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = within(body.collect()).await.unwrap().to_bytes();
        Whole { status: parts.status, headers: parts.headers, body }
    }

    /// The response's head; its body is still to come.
    pub(crate) async fn begin(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        within(self.sender.ready()).await?;
        within(self.sender.send_request(request)).await
    }

    pub(crate) async fn stream(&mut self, path: &str, body: &Value) -> Stream {
        let response = self.begin(post(path, body)).await.unwrap();
        let (parts, body) = response.into_parts();
        Stream { status: parts.status, headers: parts.headers, body, buffer: BytesMut::new() }
    }

    /// Closes the connection as a client does that goes away.
    pub(crate) fn leave(self) {
        self.connection.abort();
    }
}

pub(crate) fn post(path: &str, body: &Value) -> Request<Full<Bytes>> {
    Request::post(path).header("content-type", "application/json").body(Full::new(body.to_string().into())).unwrap()
}

pub(crate) struct Whole {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Whole {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// A response that comes in events.
pub(crate) struct Stream {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    buffer: BytesMut,
}

/// One event: its name, if it has one, and its data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

impl Stream {
    /// The next event; `None` at the regular end, an error where the connection breaks.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, hyper::Error> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|window| window == b"\n\n") {
                return Ok(Some(parse(&self.buffer.split_to(end + 2))));
            }
            match within(self.body.frame()).await {
                Some(frame) => self.buffer.extend_from_slice(frame?.data_ref().unwrap()),
                None if self.buffer.is_empty() => return Ok(None),
                None => panic!("the stream ends inside an event"),
            }
        }
    }

    /// All events to the regular end.
    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await.unwrap() {
            events.push(event);
        }
        events
    }

    /// Events until the connection breaks.
    pub(crate) async fn until_broken(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Ok(event) = self.next().await {
            events.push(event.expect("the stream should break, but ended regularly"));
        }
        events
    }
}

fn parse(bytes: &[u8]) -> Event {
    let text = std::str::from_utf8(bytes).unwrap().trim_end_matches('\n');
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
    Event { name: field("event: "), data: field("data: ").unwrap() }
}

/// Fails the test instead of hanging.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing happened for too long")
}

/// Waits for something that another thread brings about.
pub(crate) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !condition() {
        assert!(tokio::time::Instant::now() < deadline, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
