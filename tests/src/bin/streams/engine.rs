//! An engine that sends an event a second to thousands of streams.

use std::io;
use std::time::Duration;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
const EVENT: &str =
    r#"data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" word"}}]}"#;
const MODELS: &str = r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#;

/// Serves on a free port, whose address is printed, until the process is ended.
pub(crate) async fn serve(gap: Duration) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        // A connection that breaks is counted by the clients.
        tokio::spawn(async move { answer(stream, gap).await.ok() });
    }
}

async fn answer(mut stream: TcpStream, gap: Duration) -> io::Result<()> {
    let mut received = Vec::with_capacity(1024);
    let Some((head, length)) = read_head(&mut stream, &mut received).await? else { return Ok(()) };
    while received.len() < head + length {
        if stream.read_buf(&mut received).await? == 0 {
            return Ok(());
        }
    }
    if !received.starts_with(b"POST") {
        let length = MODELS.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{MODELS}"
        );
        return stream.write_all(answer.as_bytes()).await;
    }
    let tokens = max_tokens(&received[head..]);
    drop(received);
    stream.write_all(HEAD.as_bytes()).await?;
    let event = chunk(EVENT);
    for _ in 0..tokens {
        stream.write_all(event.as_bytes()).await?;
        tokio::time::sleep(gap).await;
    }
    stream.write_all((chunk("data: [DONE]") + "0\r\n\r\n").as_bytes()).await
}

fn chunk(line: &str) -> String {
    format!("{:x}\r\n{line}\n\n\r\n", line.len() + 2)
}

/// Where the head ends, and how long the body is.
async fn read_head(stream: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<Option<(usize, usize)>> {
    loop {
        if let Some(end) = memmem::find(received, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            return Ok(Some((end + 4, length.and_then(|length| length.trim().parse().ok()).unwrap_or(0))));
        }
        if stream.read_buf(received).await? == 0 {
            return Ok(None);
        }
    }
}

fn max_tokens(body: &[u8]) -> usize {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    body["max_tokens"].as_u64().unwrap_or(1) as usize
}
