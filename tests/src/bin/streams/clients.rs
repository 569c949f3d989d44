//! Clients that hold a hundred streams on each HTTP/2 connection and read them to their ends.

use std::process::ExitCode;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use isotherm_tests::{document, streamed_chat};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Streams of one connection.
const EACH: usize = 100;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Says that it begins; asks; then prints `WHOLE FAILED`.
pub(crate) async fn ask(url: &str, streams: usize, tokens: usize) -> ExitCode {
    println!("asking");
    let authority = url.trim_start_matches("http://").to_owned();
    let mut running = JoinSet::new();
    let mut refused = 0;
    for first in (0..streams).step_by(EACH) {
        let count = EACH.min(streams - first);
        match connect(&authority).await {
            Ok(connection) => {
                for number in first..first + count {
                    running.spawn(stream(connection.clone(), authority.clone(), number, tokens));
                }
            }
            Err(error) => {
                eprintln!("no connection: {error}");
                refused += count;
            }
        }
    }
    let (mut whole, mut failed) = (0, refused);
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok(Ok(())) => whole += 1,
            Ok(Err(error)) => {
                if failed < 5 {
                    eprintln!("a stream failed: {error}");
                }
                failed += 1;
            }
            Err(error) => {
                eprintln!("{error}");
                failed += 1;
            }
        }
    }
    println!("{whole} {failed}");
    ExitCode::SUCCESS
}

async fn connect(authority: &str) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(authority).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = Builder::new(TokioExecutor::new()).handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

async fn stream(
    mut connection: SendRequest<Full<Bytes>>,
    authority: String,
    number: usize,
    tokens: usize,
) -> Result<(), Failure> {
    let body = streamed_chat(&document(number as u64, 200), "What is it about?", tokens as u32).to_string();
    connection.ready().await?;
    let request = Request::post(format!("http://{authority}/v1/chat/completions"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))?;
    let response = connection.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    let events = body.windows(6).filter(|window| window == b"data: ").count();
    if status.is_success() && body.ends_with(b"data: [DONE]\n\n") && events == tokens + 1 {
        return Ok(());
    }
    Err(format!("status {status}, {events} events: {}", String::from_utf8_lossy(&body[..body.len().min(200)])).into())
}
