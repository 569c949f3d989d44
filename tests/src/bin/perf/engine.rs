//! Engines that answer like vLLM and think no time: a chat is answered whole, or with a write for each token, as many as
//! `max_tokens` says.

use std::io;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const EVENT: &str = concat!(
    r#"data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1764460800,"model":"m","#,
    r#""choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}"#,
    "\n\n"
);
const WHOLE: &str = concat!(
    r#"{"id":"chatcmpl-0123456789abcdef","object":"chat.completion","created":1764460800,"model":"m","choices":"#,
    r#"[{"index":0,"message":{"role":"assistant","content":"A short answer of some words."},"logprobs":null,"#,
    r#""finish_reason":"stop"}],"usage":{"prompt_tokens":100,"total_tokens":108,"completion_tokens":8}}"#
);
const MODELS: &str = r#"{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"isotherm"}]}"#;
/// What routers ask SGLang and vLLM about themselves before they send anything.
const ABOUT: &str =
    r#"{"status":"ok","version":"0.32.0","model_path":"m","is_generation":true,"served_model_name":"m"}"#;

/// Serves on so many free ports, printed one a line, until the process is ended.
pub(crate) async fn serve(count: usize) -> io::Result<()> {
    let replies = Replies::new();
    let replies: &'static Replies = Box::leak(Box::new(replies));
    let mut engines = tokio::task::JoinSet::new();
    for _ in 0..count {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("http://{}", listener.local_addr()?);
        engines.spawn(accept(listener, replies));
    }
    println!("ready");
    while engines.join_next().await.is_some() {}
    Ok(())
}

/// What is sent, made once.
struct Replies {
    whole: Vec<u8>,
    models: Vec<u8>,
    about: Vec<u8>,
    head: Vec<u8>,
    event: Vec<u8>,
    done: Vec<u8>,
}

impl Replies {
    fn new() -> Replies {
        let json = |body: &str| {
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        };
        let chunk = |data: &str| format!("{:x}\r\n{data}\r\n", data.len());
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
        Replies {
            whole: json(WHOLE).into(),
            models: json(MODELS).into(),
            about: json(ABOUT).into(),
            head: head.into(),
            event: chunk(EVENT).into(),
            done: chunk("data: [DONE]\n\n").into(),
        }
    }
}

async fn accept(listener: TcpListener, replies: &'static Replies) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // A connection that breaks is the other side's business; the load generator counts what fails.
                tokio::spawn(async move { connection(stream, replies).await.ok() });
            }
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    }
}

async fn connection(mut stream: TcpStream, replies: &Replies) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::with_capacity(64 * 1024);
    loop {
        let Some(head) = read_head(&mut stream, &mut received).await? else { return Ok(()) };
        let end = head.end + head.content_length;
        received.reserve(end.saturating_sub(received.len()));
        while received.len() < end {
            if stream.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        }
        answer(&mut stream, &head, &received[head.end..end], replies).await?;
        received.drain(..end);
    }
}

/// What the head of a request tells.
struct Head {
    end: usize,
    content_length: usize,
    asked: Asked,
}

enum Asked {
    Chat,
    Models,
    About,
}

async fn read_head(stream: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<Option<Head>> {
    loop {
        if !received.is_empty()
            && let Some(head) = parse_head(received)?
        {
            return Ok(Some(head));
        }
        if stream.read_buf(received).await? == 0 {
            return Ok(None);
        }
    }
}

fn parse_head(received: &[u8]) -> io::Result<Option<Head>> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let status = request.parse(received).map_err(|error| invalid(error.to_string()))?;
    let httparse::Status::Complete(end) = status else { return Ok(None) };
    let asked = match (request.method, request.path) {
        (Some("POST"), _) => Asked::Chat,
        (_, Some(path)) if path.ends_with("/models") => Asked::Models,
        _ => Asked::About,
    };
    let mut content_length = 0;
    for header in request.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") {
            let length = std::str::from_utf8(header.value).ok().and_then(|value| value.trim().parse().ok());
            content_length = length.ok_or_else(|| invalid("content-length is no number".to_owned()))?;
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(invalid("a chunked request; only those with a length are read".to_owned()));
        }
    }
    Ok(Some(Head { end, content_length, asked }))
}

async fn answer(stream: &mut TcpStream, head: &Head, body: &[u8], replies: &Replies) -> io::Result<()> {
    match head.asked {
        Asked::Models => stream.write_all(&replies.models).await,
        Asked::About => stream.write_all(&replies.about).await,
        Asked::Chat if field(body, b"\"stream\"").is_some_and(|value| value.starts_with(b"true")) => {
            // Some routers write the newer name in place of the older.
            let tokens = field(body, b"\"max_tokens\"").or_else(|| field(body, b"\"max_completion_tokens\""));
            let tokens = tokens.map_or(1, number);
            stream.write_all(&replies.head).await?;
            for _ in 0..tokens {
                stream.write_all(&replies.event).await?;
                // Streams take turns, as in an engine's step.
                tokio::task::yield_now().await;
            }
            stream.write_all(&replies.done).await?;
            stream.write_all(b"0\r\n\r\n").await
        }
        Asked::Chat => stream.write_all(&replies.whole).await,
    }
}

/// What follows a key. The prompt holds no such key, so that a search is enough, wherever a router that writes the body
/// anew puts it.
fn field<'b>(body: &'b [u8], key: &[u8]) -> Option<&'b [u8]> {
    let behind = &body[memmem::find(body, key)? + key.len()..];
    let value = behind.iter().position(|byte| !matches!(byte, b':' | b' '))?;
    Some(&behind[value..])
}

fn number(digits: &[u8]) -> usize {
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.take(6).fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::{field, number};

    #[test]
    fn fields_are_found_with_and_without_spaces() {
        let body = br#"{"messages": [], "stream": true,"max_tokens":200}"#;
        assert!(field(body, b"\"stream\"").unwrap().starts_with(b"true"));
        assert_eq!(field(body, b"\"max_tokens\"").map(number), Some(200));
        assert_eq!(field(body, b"\"n\""), None);
    }
}
