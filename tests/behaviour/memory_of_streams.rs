//! What a stream may keep in the router while its client takes nothing.

use std::time::Duration;

use isotherm_tests::{Client, Metrics, Running, eventually, streamed_chat};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Enough of them that whatever else the process takes meanwhile does not count.
const STREAMS: usize = 300;
/// KiB for each stream: what was read from the engine and not yet taken by the client, and all that is kept of both
/// connections. What their sockets hold is the system's.
const MOST: u64 = 256;

/// An engine that says as much as is taken, to everybody.
async fn talkative() -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let serving = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            connections.spawn(async move {
                let mut request = vec![0; 64 * 1024];
                let length = stream.read(&mut request).await.unwrap_or(0);
                if !request[..length].starts_with(b"POST") {
                    let healthy = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                    let _ = stream.write_all(healthy).await;
                    return;
                }
                let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                let event = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n".repeat(500);
                let mut sent = stream.write_all(head).await;
                while sent.is_ok() {
                    sent = stream.write_all(&event).await;
                }
            });
        }
    });
    (url, serving)
}

#[tokio::test]
async fn streams_that_nobody_takes_keep_little_memory_each() {
    let (url, engine) = talkative().await;
    let instance = format!("talkative={url}");
    let router = Running::start(&["serve", "--port", "0", "--admin-port", "0", "--instance", &instance]);
    let body = streamed_chat("A beginning.", "A question?", 1_000);
    // The first ones bring what every later one shares.
    let mut streams = Vec::new();
    for _ in 0..STREAMS / 20 {
        streams.push(Client::new(router.url()).open("/v1/chat/completions", &body).await.expect("a stream"));
    }
    let before = standing_still(&router).await;
    for _ in 0..STREAMS {
        streams.push(Client::new(router.url()).open("/v1/chat/completions", &body).await.expect("a stream"));
    }
    let each = standing_still(&router).await.saturating_sub(before) / STREAMS as u64;
    assert!(each <= MOST, "{each} KiB a stream");
    drop(streams);
    eventually("nothing is in flight", Duration::from_secs(10), async || {
        (Metrics::read(router.admin()).await.in_flight() == 0.0).then_some(())
    })
    .await;
    engine.abort();
}

/// The memory of the router once it grows no more.
async fn standing_still(router: &Running) -> u64 {
    let mut memory = 0;
    eventually("the streams stand still", Duration::from_secs(20), async || {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = router.memory_kib();
        let stands = now == memory;
        memory = now;
        stands.then_some(memory)
    })
    .await
}
