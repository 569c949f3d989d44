//! Webhooks that are down, slow, refuse or lead elsewhere: attempts are bounded, and nobody waits.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;
use crate::alerts::book::Group;

const SHORT: Patience = Patience {
    answer: Duration::from_millis(300),
    pauses: &[Duration::from_millis(5), Duration::from_millis(10), Duration::from_millis(10)],
};
const WITHIN: Duration = Duration::from_secs(20);

/// A listener that answers every request alike, and counts requests and connections that are open.
struct Receiver {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Receiver {
    /// Answers with this head; with none it never does.
    async fn answering(head: Option<String>) -> Receiver {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counted, opened) = (Arc::clone(&requests), Arc::clone(&open));
        let accepting = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (head, counted, opened) = (head.clone(), Arc::clone(&counted), Arc::clone(&opened));
                opened.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let mut bytes = [0; 4_096];
                    let mut seen = Vec::new();
                    while let Ok(length @ 1..) = stream.read(&mut bytes).await {
                        seen.extend_from_slice(&bytes[..length]);
                        // Every message ends so.
                        if seen.ends_with(b"}]}") {
                            counted.fetch_add(1, Ordering::SeqCst);
                            if let Some(head) = &head {
                                let _ = stream.write_all(head.as_bytes()).await;
                            }
                        }
                    }
                    opened.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Receiver { address, requests, open, accepting }
    }

    async fn status(line: &str) -> Receiver {
        Receiver::answering(Some(format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\n\r\n"))).await
    }

    fn url(&self) -> WebhookUrl {
        format!("http://{}/hook", self.address).parse().unwrap()
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Sends a message that speaks of one alert.
struct Sending {
    notifier: Notifier,
    metrics: Arc<Metrics>,
}

impl Sending {
    fn new() -> Sending {
        let metrics = Arc::new(Metrics::new("test"));
        let notifier = Notifier { patience: SHORT, ..Notifier::new(Arc::clone(&metrics), "http://admin".to_owned()) };
        Sending { notifier, metrics }
    }

    fn send(&self, webhooks: &[WebhookUrl]) {
        let condition = super::super::book::Condition {
            rule: "IsothermInstanceIll",
            severity: "warning",
            lasting: Duration::ZERO,
            labels: super::super::book::Labels::new(),
            values: serde_json::Value::Null,
            summary: "i is down".to_owned(),
            description: "why".to_owned(),
        };
        let mut book = super::super::book::Book::default();
        book.take_in(vec![condition], std::time::SystemTime::now());
        let group: Group = book.due(Duration::from_secs(1), std::time::SystemTime::now()).remove(0);
        self.notifier.send(webhooks, &group);
    }

    fn count(&self, outcome: &str) -> usize {
        let line = format!("isotherm_alert_notifications_total{{outcome=\"{outcome}\"}} ");
        let text = self.metrics.expose(None).body;
        text.lines().find_map(|shown| shown.strip_prefix(&line)?.parse().ok()).unwrap()
    }

    /// Until so many messages had that outcome.
    async fn wait(&self, outcome: &str, messages: usize) {
        let begun = Instant::now();
        while self.count(outcome) < messages {
            assert!(begun.elapsed() < WITHIN, "{outcome}: {}", self.count(outcome));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(self.count(outcome), messages);
    }
}

#[tokio::test]
async fn a_webhook_that_fails_is_tried_again_so_often_and_the_next_message_comes_after_it() {
    for line in ["500 Internal Server Error", "503 Service Unavailable", "429 Too Many Requests"] {
        let (receiver, sending) = (Receiver::status(line).await, Sending::new());
        sending.send(&[receiver.url()]);
        sending.wait("failed", 1).await;
        assert_eq!(receiver.requests(), SHORT.pauses.len() + 1, "{line}");
        sending.send(&[receiver.url()]);
        sending.wait("failed", 2).await;
        assert_eq!(receiver.requests(), 2 * (SHORT.pauses.len() + 1), "{line}");
    }
}

#[tokio::test]
async fn a_refusal_or_a_redirect_is_final_and_nothing_goes_where_it_leads() {
    let elsewhere = Receiver::status("200 OK").await;
    let redirect = format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", {
        format!("http://{}/", elsewhere.address)
    });
    for head in [redirect, "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_owned()] {
        let (receiver, sending) = (Receiver::answering(Some(head)).await, Sending::new());
        sending.send(&[receiver.url()]);
        sending.wait("failed", 1).await;
        assert_eq!(receiver.requests(), 1);
    }
    assert_eq!(elsewhere.requests(), 0);
}

#[tokio::test]
async fn nobody_waits_for_one_that_never_answers_and_its_connections_end() {
    let (slow, well, sending) =
        (Receiver::answering(None).await, Receiver::status("204 No Content").await, Sending::new());
    let begun = Instant::now();
    let messages = 2 * WAITING;
    for _ in 0..messages {
        sending.send(&[slow.url(), well.url()]);
        // The one that does well is not to be overrun.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(begun.elapsed() < WITHIN / 4, "sending waits: {:?}", begun.elapsed());
    sending.wait("sent", messages).await;
    let dropped = sending.count("dropped");
    assert!((messages - WAITING - 2..=messages - WAITING).contains(&dropped), "{dropped} of {messages} dropped");
    assert!(slow.open.load(Ordering::SeqCst) <= 1, "one attempt at a time");
    // It is given up with everything that waits, and its connection ends.
    sending.send(&[well.url()]);
    let given_up = Instant::now();
    while slow.open.load(Ordering::SeqCst) > 0 {
        assert!(given_up.elapsed() < WITHIN, "a connection is left");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn one_that_is_down_gets_the_message_once_it_is_back() {
    let down = Receiver::status("200 OK").await;
    let (address, url) = (down.address, down.url());
    drop(down);
    let sending = Sending::new();
    sending.send(std::slice::from_ref(&url));
    sending.wait("failed", 1).await;
    let listener = loop {
        match TcpListener::bind(address).await {
            Ok(listener) => break listener,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    sending.send(std::slice::from_ref(&url));
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut bytes = [0; 4_096];
    while stream.read(&mut bytes).await.unwrap() == bytes.len() {}
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    sending.wait("sent", 1).await;
}
