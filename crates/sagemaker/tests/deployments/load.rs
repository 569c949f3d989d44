//! Clients that stream chat completions without a pause, and count what went wrong.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Clients at work.
pub(crate) struct Load {
    clients: JoinSet<()>,
    stop: Arc<AtomicBool>,
    succeeded: Arc<AtomicUsize>,
    failures: Arc<Mutex<Vec<String>>>,
}

impl Load {
    /// So many clients, each with a prefix of its own, that call this path.
    pub(crate) fn start(address: SocketAddr, path: &'static str, clients: usize) -> Load {
        let mut load =
            Load { clients: JoinSet::new(), stop: Arc::default(), succeeded: Arc::default(), failures: Arc::default() };
        for client in 0..clients {
            let (stop, succeeded, failures) =
                (Arc::clone(&load.stop), Arc::clone(&load.succeeded), Arc::clone(&load.failures));
            load.clients.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    match stream(address, path, client).await {
                        Ok(()) => drop(succeeded.fetch_add(1, Ordering::Relaxed)),
                        Err(failure) => failures.lock().push(failure),
                    }
                }
            });
        }
        load
    }

    /// How many streams have ended well.
    pub(crate) fn succeeded(&self) -> usize {
        self.succeeded.load(Ordering::Relaxed)
    }

    /// Lets the clients end; none of their requests may have failed.
    pub(crate) async fn end(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        while self.clients.join_next().await.is_some() {}
        let failures = self.failures.lock().clone();
        assert!(failures.is_empty(), "{} failed: {:?}", failures.len(), failures.first());
        self.succeeded.load(Ordering::Relaxed)
    }
}

/// One stream, from its request to its end.
pub(crate) async fn stream(address: SocketAddr, path: &str, client: usize) -> Result<(), String> {
    let answer = post(address, path, &chat(client)).await?;
    if answer.starts_with("HTTP/1.1 200") && answer.contains("[DONE]") { Ok(()) } else { Err(answer) }
}

fn chat(client: usize) -> String {
    let prefix = format!("client {client} ").repeat(20);
    format!(r#"{{"stream":true,"max_tokens":12,"messages":[{{"role":"user","content":"{prefix}"}}]}}"#)
}

/// The whole answer to a POST, as text.
pub(crate) async fn post(address: SocketAddr, path: &str, body: &str) -> Result<String, String> {
    let exchange = async {
        let mut connection = TcpStream::connect(address).await?;
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: \
             {length}\r\n\r\n"
        );
        connection.write_all(head.as_bytes()).await?;
        connection.write_all(body.as_bytes()).await?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    exchange.await.map_err(|error| error.to_string())
}
