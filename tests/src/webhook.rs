//! A webhook's receiver: a real listener that keeps what is posted to it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Takes every POST and answers 200; gone with the test.
#[derive(Debug)]
pub struct Webhook {
    address: SocketAddr,
    posts: Arc<Mutex<Vec<Result<Value, String>>>>,
    accepting: JoinHandle<()>,
}

impl Webhook {
    pub async fn start() -> Webhook {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let posts = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&posts);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                tokio::spawn(async move {
                    let post = take(stream).await;
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(post);
                });
            }
        });
        Webhook { address, posts, accepting }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Everything that was posted so far. Panics where that was no whole request with a message: whoever looks must learn
    /// of it, which a panic in the listener's own task would not tell.
    pub fn messages(&self) -> Vec<Value> {
        let posts = self.posts.lock().unwrap_or_else(PoisonError::into_inner);
        posts
            .iter()
            .map(|post| post.clone().unwrap_or_else(|problem| panic!("posted to a webhook: {problem}")))
            .collect()
    }

    /// The alerts of all messages, as `NAME STATUS`, each once, in the order in which they first came.
    pub fn told(&self) -> Vec<String> {
        let mut told = Vec::new();
        for message in self.messages() {
            for alert in message["alerts"].as_array().into_iter().flatten() {
                let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
                let one = format!("{} {}", word(&alert["labels"]["alertname"]), word(&alert["status"]));
                if !told.contains(&one) {
                    told.push(one);
                }
            }
        }
        told
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Reads one POST and answers it; what is wrong with it is told.
async fn take(stream: TcpStream) -> Result<Value, String> {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        match stream.read_line(&mut line).await {
            Ok(0) => return Err(format!("the connection ended within the head {lines:?}")),
            Ok(_) if line.trim().is_empty() => break,
            Ok(_) => lines.push(line),
            Err(error) => return Err(format!("{error} after {lines:?}")),
        }
    }
    let length = lines.iter().filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok()).flatten()
    });
    let mut body = vec![0; length.ok_or_else(|| format!("no content-length in {lines:?}"))?];
    stream.read_exact(&mut body).await.map_err(|error| format!("{error} within the body"))?;
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(answer).await.map_err(|error| format!("{error} while answering"))?;
    if !lines[0].starts_with("POST /hook HTTP/1.1") {
        return Err(format!("{:?} is no POST to the webhook", lines[0]));
    }
    serde_json::from_slice(&body).map_err(|error| format!("{error} in {:?}", String::from_utf8_lossy(&body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn posted(bytes: &[u8]) -> Webhook {
        let webhook = Webhook::start().await;
        let mut stream = TcpStream::connect(webhook.address).await.expect("the listener");
        stream.write_all(bytes).await.expect("written");
        stream.shutdown().await.expect("ended");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        while webhook.posts.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            tokio::task::yield_now().await;
        }
        webhook
    }

    #[tokio::test]
    async fn a_message_is_kept() {
        let webhook = posted(b"POST /hook HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}").await;
        assert_eq!(webhook.messages(), [serde_json::json!({})]);
    }

    #[tokio::test]
    #[should_panic = "within the body"]
    async fn half_a_message_is_not_passed_over() {
        posted(b"POST /hook HTTP/1.1\r\nContent-Length: 20\r\n\r\n{}").await.messages();
    }

    #[tokio::test]
    #[should_panic = "is no POST"]
    async fn another_request_is_not_passed_over() {
        posted(b"GET /hook HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}").await.messages();
    }
}
