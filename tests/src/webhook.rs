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
    messages: Arc<Mutex<Vec<Value>>>,
    accepting: JoinHandle<()>,
}

impl Webhook {
    pub async fn start() -> Webhook {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let messages = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&messages);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                tokio::spawn(async move {
                    let message = take(stream).await.expect("a whole request");
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(message);
                });
            }
        });
        Webhook { address, messages, accepting }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Everything that was posted so far.
    pub fn messages(&self) -> Vec<Value> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).clone()
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

async fn take(stream: TcpStream) -> std::io::Result<Value> {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
    Ok(serde_json::from_slice(&body)?)
}
