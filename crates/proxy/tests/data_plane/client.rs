//! A client that writes and reads HTTP/1.1 byte by byte, so that tests decide what goes over the wire and when.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stopwatch::Stopwatch;

/// No test waits longer than this for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until this is so; panics with `what` otherwise.
pub(crate) async fn until(what: &str, so: impl Fn() -> bool) {
    let waiting = Stopwatch::start();
    while !so() {
        assert!(waiting.elapsed() < PATIENCE, "not yet: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A connection to the router.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case, and values.
    pub(crate) headers: Vec<(String, String)>,
    /// Without its framing.
    pub(crate) body: Vec<u8>,
    /// Whether the body came to its end; `false` when the connection ended first.
    pub(crate) complete: bool,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Client::over(stream)
    }

    pub(crate) fn over(stream: TcpStream) -> Client {
        Client { stream, read: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Reads one response.
    pub(crate) async fn answer(&mut self) -> Answer {
        tokio::time::timeout(PATIENCE, self.read_answer()).await.expect("no answer")
    }

    /// Reads until this text has come; what came is left to be read as an answer.
    pub(crate) async fn until(&mut self, text: &str) {
        let reading = async {
            while !self.read.windows(text.len()).any(|window| window == text.as_bytes()) {
                assert!(self.more().await, "the connection ended before {text:?}: {:?}", self.so_far());
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.unwrap_or_else(|_| panic!("{text:?} did not come"));
    }

    pub(crate) fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.read).into_owned()
    }

    /// Whether the connection ends without another byte.
    pub(crate) async fn ends(&mut self) -> bool {
        !tokio::time::timeout(PATIENCE, self.more()).await.expect("the connection does not end")
    }

    async fn read_answer(&mut self) -> Answer {
        let end = loop {
            if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            assert!(self.more().await, "the connection ended within a head: {:?}", self.so_far());
        };
        let head: Vec<u8> = self.read.drain(..end).collect();
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        if (100..200).contains(&status) {
            return Answer { status, headers, body: Vec::new(), complete: true };
        }
        let of = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let (body, complete) = match (of("content-length"), of("transfer-encoding")) {
            (Some(length), _) => self.read_length(length.parse().unwrap()).await,
            (None, Some(_)) => self.read_chunks().await,
            (None, None) => {
                while self.more().await {}
                (std::mem::take(&mut self.read), true)
            }
        };
        Answer { status, headers, body, complete }
    }

    async fn read_length(&mut self, length: usize) -> (Vec<u8>, bool) {
        while self.read.len() < length {
            if !self.more().await {
                return (std::mem::take(&mut self.read), false);
            }
        }
        (self.read.drain(..length).collect(), true)
    }

    async fn read_chunks(&mut self) -> (Vec<u8>, bool) {
        let mut body = Vec::new();
        loop {
            while !self.read.windows(2).any(|two| two == b"\r\n") {
                if !self.more().await {
                    return (body, false);
                }
            }
            let end = self.read.windows(2).position(|two| two == b"\r\n").unwrap();
            let size = usize::from_str_radix(std::str::from_utf8(&self.read[..end]).unwrap(), 16).unwrap();
            self.read.drain(..end + 2);
            let (chunk, whole) = self.read_length(size + 2).await;
            body.extend_from_slice(&chunk[..chunk.len().min(size)]);
            if !whole {
                return (body, false);
            }
            if size == 0 {
                return (body, true);
            }
        }
    }

    async fn more(&mut self) -> bool {
        // A reset is an end, too.
        self.stream.read_buf(&mut self.read).await.is_ok_and(|length| length > 0)
    }
}

/// A request with a body.
pub(crate) fn post(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: router\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A chat request with this text.
pub(crate) fn chat(text: &str) -> String {
    post("/v1/chat/completions", &format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#))
}

/// A request without a body.
pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: router\r\n\r\n")
}
