//! Users that ask again as soon as they have an answer, each on a connection of its own: written for little work of its
//! own, since it shares the machine with what it measures.

use std::cell::RefCell;
use std::fs;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Buf;
use isotherm_report::percentile::percentile;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::chunked::Chunked;

type Failure = Box<dyn std::error::Error>;

/// How long the first part of a run is that does not count: connections open, caches fill.
const WARM_SHARE: f64 = 0.2;
/// A request that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(15);
/// Different beginnings of prompts.
const DOCUMENTS: u64 = 16;
/// How long the number of a question is.
const NUMBER_DIGITS: usize = 8;
/// The least that a token's event takes.
const EVENT_BYTES: u64 = 100;
/// How much of an error's body is told.
const ERROR_BYTES: usize = 100;
/// LiteLLM refuses requests without its key; all others ignore or pass it on.
const AUTHORIZATION: &str = "Bearer sk-perf-b7c1f0a2d95e4c83a6d4";

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    authority: String,
    connections: usize,
    duration: Duration,
    prompt_bytes: usize,
    /// Tokens of a streamed answer; 0: the answer is not streamed.
    tokens: usize,
}

impl Plan {
    /// `AUTHORITY CONNECTIONS SECONDS PROMPT_BYTES TOKENS`.
    pub(crate) fn parse(words: &[&str]) -> Option<Plan> {
        let [authority, connections, seconds, prompt_bytes, tokens] = words else { return None };
        Some(Plan {
            authority: (*authority).to_owned(),
            connections: connections.parse().ok()?,
            duration: Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?,
            prompt_bytes: prompt_bytes.parse().ok()?,
            tokens: tokens.parse().ok()?,
        })
    }
}

/// What was seen.
#[derive(Debug, Default)]
struct Seen {
    /// All requests that were answered, those of the beginning too.
    sent: u64,
    /// Microseconds to the first byte of the body, of the requests that count.
    first_byte: Vec<f64>,
    /// Microseconds to its end.
    whole: Vec<f64>,
    reconnects: u64,
    failed: u64,
    failure: Option<String>,
}

/// Asks for as long as was said, then prints one line of JSON.
pub(crate) async fn run(plan: Plan) -> std::io::Result<()> {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let next = Rc::new(RefCell::new(0));
    let documents: Rc<[Document]> = (0..DOCUMENTS).map(|document| Document::new(&plan, document)).collect();
    let started = Instant::now();
    let users = LocalSet::new();
    for _ in 0..plan.connections {
        users.spawn_local(user(plan.clone(), Rc::clone(&documents), started, Rc::clone(&next), Rc::clone(&seen)));
    }
    users.await;
    println!("{}", told(&mut seen.borrow_mut(), plan.duration.mul_f64(1.0 - WARM_SHARE)));
    Ok(())
}

fn told(seen: &mut Seen, counted: Duration) -> Value {
    let mut percentiles = |values: fn(&mut Seen) -> &mut Vec<f64>| {
        let values = values(seen);
        values.sort_by(f64::total_cmp);
        json!({"p50": percentile(values, 50.0), "p99": percentile(values, 99.0)})
    };
    let (first_byte, whole) = (percentiles(|seen| &mut seen.first_byte), percentiles(|seen| &mut seen.whole));
    json!({
        "sent": seen.sent,
        "requests": seen.whole.len(),
        "per_second": seen.whole.len() as f64 / counted.as_secs_f64(),
        "first_byte_us": first_byte,
        "whole_us": whole,
        "reconnects": seen.reconnects,
        "failed": seen.failed,
        "failure": seen.failure,
        "cpu_seconds": own_cpu_seconds(),
    })
}

async fn user(
    plan: Plan,
    documents: Rc<[Document]>,
    started: Instant,
    next: Rc<RefCell<u64>>,
    seen: Rc<RefCell<Seen>>,
) {
    let (warm, end) = (started + plan.duration.mul_f64(WARM_SHARE), started + plan.duration);
    let mut connection = None;
    while Instant::now() < end {
        let number = next.replace_with(|next| *next + 1);
        let document = &documents[(number.wrapping_mul(0x9E37_79B9) % DOCUMENTS) as usize];
        let asked = tokio::time::timeout(PATIENCE, ask(&mut connection, document, number, &plan)).await;
        let asked = asked.unwrap_or_else(|_| Err(format!("no answer within {PATIENCE:?}").into()));
        let has_failed = asked.is_err();
        seen.borrow_mut().note(asked, warm..end);
        if has_failed {
            connection = None;
            // What fails at once shall not be asked a million times.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Seen {
    /// Takes in how a request ended. What ends within the time that counts, counts: so the rate is that of a steady state.
    fn note(&mut self, asked: Result<Answer, Failure>, counted: Range<Instant>) {
        match asked {
            Ok(answer) => {
                self.sent += 1;
                self.reconnects += u64::from(answer.connected);
                if counted.contains(&Instant::now()) {
                    self.first_byte.push(answer.first_byte.as_secs_f64() * 1e6);
                    self.whole.push(answer.whole.as_secs_f64() * 1e6);
                }
            }
            Err(failure) => {
                self.failed += 1;
                self.failure.get_or_insert_with(|| failure.to_string());
            }
        }
    }
}

/// The bytes of a request about one of the documents, up to the number of its question: the same for all users, who
/// would need a gigabyte else.
struct Document {
    bytes: Vec<u8>,
}

/// What comes behind the number.
const AFTER_NUMBER: &str = r#"?"}]}"#;

impl Document {
    fn new(plan: &Plan, document: u64) -> Document {
        let text = isotherm_tests::document(document, plan.prompt_bytes.div_ceil(4));
        let text = &text[..text.len().min(plan.prompt_bytes)];
        let answer = if plan.tokens > 0 {
            format!(r#","stream":true,"max_tokens":{}"#, plan.tokens)
        } else {
            r#","max_tokens":8"#.to_owned()
        };
        let body = format!(
            r#"{{"model":"m"{answer},"messages":[{{"role":"system","content":"{text}"}},{{"role":"user","content":"Question "#
        );
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             authorization: {AUTHORIZATION}\r\ncontent-length: {}\r\n\r\n",
            plan.authority,
            body.len() + NUMBER_DIGITS + AFTER_NUMBER.len()
        );
        Document { bytes: [head.into_bytes(), body.into_bytes()].concat() }
    }
}

/// How long an answer took.
struct Answer {
    first_byte: Duration,
    whole: Duration,
    /// Whether a connection was opened for it.
    connected: bool,
}

async fn ask(
    connection: &mut Option<TcpStream>,
    document: &Document,
    number: u64,
    plan: &Plan,
) -> Result<Answer, Failure> {
    let end = format!("{:0NUMBER_DIGITS$}{AFTER_NUMBER}", number % 100_000_000);
    let connected = connection.is_none();
    let mut stream = match connection.take() {
        Some(open) => open,
        None => {
            let stream = TcpStream::connect(&plan.authority).await?;
            stream.set_nodelay(true)?;
            stream
        }
    };
    let started = Instant::now();
    stream.write_all_buf(&mut Buf::chain(document.bytes.as_slice(), end.as_bytes())).await?;
    let mut received = Vec::with_capacity(16 * 1024);
    let head = loop {
        if let Some(head) = Head::parse(&received)? {
            break head;
        }
        read(&mut stream, &mut received).await?;
    };
    let mut body = head.body;
    let mut from = head.end;
    let mut first_byte = None;
    loop {
        if received.len() > from {
            first_byte.get_or_insert_with(|| started.elapsed());
            body.pass(&received[from..])?;
            // The beginning tells what an error says.
            received.truncate(head.end + ERROR_BYTES);
            from = received.len();
        }
        if body.is_done() {
            break;
        }
        read(&mut stream, &mut received).await?;
    }
    let whole = started.elapsed();
    if head.status != 200 {
        return Err(format!("status {}: {}", head.status, String::from_utf8_lossy(&received[head.end..])).into());
    }
    if plan.tokens > 0 {
        body.check_stream(plan.tokens)?;
    }
    *connection = head.is_kept.then_some(stream);
    Ok(Answer { first_byte: first_byte.unwrap_or(whole), whole, connected })
}

async fn read(stream: &mut TcpStream, received: &mut Vec<u8>) -> Result<(), Failure> {
    received.reserve(16 * 1024);
    match stream.read_buf(received).await? {
        0 => Err("the connection ended in the middle of an answer".into()),
        _ => Ok(()),
    }
}

/// What the head of an answer tells.
struct Head {
    end: usize,
    status: u16,
    is_kept: bool,
    body: Body,
}

enum Body {
    Length(usize),
    Chunked(Chunked),
}

impl Head {
    fn parse(received: &[u8]) -> Result<Option<Head>, Failure> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(end) = response.parse(received)? else { return Ok(None) };
        let value = |name: &str| {
            let header = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
            header.and_then(|header| std::str::from_utf8(header.value).ok())
        };
        let body = match (value("transfer-encoding"), value("content-length")) {
            (Some(_), _) => Body::Chunked(Chunked::default()),
            (None, Some(length)) => Body::Length(length.trim().parse()?),
            (None, None) => return Err("an answer with neither content-length nor transfer-encoding".into()),
        };
        let is_kept = !value("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        Ok(Some(Head { end, status: response.code.unwrap_or_default(), is_kept, body }))
    }
}

impl Body {
    fn pass(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Body::Length(left) => {
                *left = left.checked_sub(bytes.len()).ok_or("more bytes than content-length says")?;
                Ok(())
            }
            Body::Chunked(chunked) => chunked.pass(bytes),
        }
    }

    /// Whether a stream has come whole: so many tokens, and its last event.
    fn check_stream(&self, tokens: usize) -> Result<(), Failure> {
        let Body::Chunked(chunked) = self else { return Err("a stream with a content-length".into()) };
        if !chunked.ends_with(b"[DONE]\n\n") {
            return Err("the stream ended without [DONE]".into());
        }
        if chunked.data < tokens as u64 * EVENT_BYTES {
            return Err(format!("the stream of {tokens} tokens had {} bytes", chunked.data).into());
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        match self {
            Body::Length(left) => *left == 0,
            Body::Chunked(chunked) => chunked.is_done(),
        }
    }
}

/// The processor time of this process, which has one thread.
fn own_cpu_seconds() -> f64 {
    let schedule = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    schedule.split_whitespace().next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()).unwrap_or_default() / 1e9
}
