//! Users that ask again as soon as they have an answer, each on a connection of its own that is kept.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use isotherm_tests::{chat, document, streamed_chat};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Beginnings that many users share.
const SHARED_DOCUMENTS: u64 = 200;
/// One request in so many begins as no other does.
const OWN_BEGINNING: u64 = 4;
/// One request in so many is a stream that the client leaves.
const LEFT_EARLY: u64 = 50;

type Connection = SendRequest<Full<Bytes>>;
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Running users.
#[derive(Debug)]
pub(crate) struct Load {
    users: JoinSet<()>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    requests: AtomicU64,
    streamed: AtomicU64,
    left: AtomicU64,
    failures: Mutex<Vec<String>>,
}

/// What was done so far.
#[derive(Debug)]
pub(crate) struct Totals {
    pub(crate) requests: u64,
    pub(crate) streamed: u64,
    pub(crate) left: u64,
}

/// What a user asks for next.
enum Ask {
    Whole(Value),
    Stream(Value),
    StreamLeftEarly(Value),
}

impl Load {
    pub(crate) fn start(url: &str, users: usize) -> Load {
        let authority: Arc<str> = url.trim_start_matches("http://").into();
        let documents: Arc<Vec<String>> = Arc::new((0..SHARED_DOCUMENTS).map(|number| document(number, 500)).collect());
        let shared = Arc::new(Shared::default());
        let mut load = Load { users: JoinSet::new(), shared };
        for _ in 0..users {
            load.users.spawn(user(Arc::clone(&authority), Arc::clone(&documents), Arc::clone(&load.shared)));
        }
        load
    }

    pub(crate) fn totals(&self) -> Totals {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Shared { requests, streamed, left, .. } = &*self.shared;
        Totals { requests: read(requests), streamed: read(streamed), left: read(left) }
    }

    /// Lets every user finish; the totals, and what failed.
    pub(crate) async fn stop(mut self) -> (Totals, Vec<String>) {
        self.shared.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = self.users.join_next().await {
            if let Err(error) = ended {
                self.shared.fail(&error);
            }
        }
        (self.totals(), std::mem::take(&mut self.shared.failures.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Shared {
    fn fail(&self, failure: &dyn fmt::Display) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure.to_string());
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} requests, {} streams left early", self.requests, self.left)
    }
}

async fn user(authority: Arc<str>, documents: Arc<Vec<String>>, shared: Arc<Shared>) {
    let mut connection = None;
    while !shared.stop.load(Ordering::Relaxed) {
        let number = shared.requests.fetch_add(1, Ordering::Relaxed);
        let asked = ask(number, &documents);
        if matches!(asked, Ask::Stream(_)) {
            shared.streamed.fetch_add(1, Ordering::Relaxed);
        }
        let open = match connection.take() {
            Some(open) => Ok(open),
            None => connect(&authority).await,
        };
        match answer(open, &authority, asked).await {
            Ok(Some(kept)) => connection = Some(kept),
            Ok(None) => {
                shared.left.fetch_add(1, Ordering::Relaxed);
            }
            Err(failure) => {
                shared.fail(&format!("request {number}: {failure}"));
                // A router that fails at once shall not be asked a million times.
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

fn ask(number: u64, documents: &[String]) -> Ask {
    let document = &documents[(number.wrapping_mul(0x9E37_79B9) % SHARED_DOCUMENTS) as usize];
    let question = format!("Question {number}?");
    let (own, beginning);
    if number.is_multiple_of(OWN_BEGINNING) {
        own = format!("Document {number}. {document}");
        beginning = &own;
    } else {
        beginning = document;
    }
    if number % LEFT_EARLY == 1 {
        Ask::StreamLeftEarly(streamed_chat(beginning, &question, 10_000))
    } else if number.is_multiple_of(2) {
        Ask::Stream(streamed_chat(beginning, &question, 16))
    } else {
        Ask::Whole(chat(beginning, &question))
    }
}

async fn connect(authority: &str) -> Result<Connection, Failure> {
    let stream = TcpStream::connect(authority).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Sends the request and reads its answer; the connection if it may be used again.
async fn answer(open: Result<Connection, Failure>, authority: &str, ask: Ask) -> Result<Option<Connection>, Failure> {
    let mut connection = open?;
    connection.ready().await?;
    let (Ask::Whole(body) | Ask::Stream(body) | Ask::StreamLeftEarly(body)) = &ask;
    let request = Request::post("/v1/chat/completions")
        .header("host", authority)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))?;
    let response = connection.send_request(request).await?;
    let status = response.status();
    let mut body = response.into_body();
    if matches!(ask, Ask::StreamLeftEarly(_)) && status.is_success() {
        body.frame().await.transpose()?;
        return Ok(None);
    }
    let body = body.collect().await?.to_bytes();
    let whole = !matches!(ask, Ask::Stream(_)) || body.ends_with(b"data: [DONE]\n\n");
    if status.is_success() && whole {
        return Ok(Some(connection));
    }
    Err(format!("status {status}: {}", String::from_utf8_lossy(&body[..body.len().min(300)])).into())
}
