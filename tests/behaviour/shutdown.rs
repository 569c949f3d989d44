//! Ctrl-C: what runs finishes, then the process ends well.

use std::time::Duration;

use isotherm_tests::{Client, Running, document, streamed_chat};

use crate::{serve, up};

/// Leaves the streams of these tests ample time.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_fleet_of_emulated_engines_drains_and_ends_well() {
    let up = up(&["--engines", "2", "--speed", "10"]);
    interrupted_stream_is_finished(up).await;
}

#[tokio::test]
async fn a_router_drains_and_ends_well() {
    let engines = isotherm_tests::Engines::start(2, &["--speed", "10"]);
    interrupted_stream_is_finished(serve(&engines, &[])).await;
}

#[tokio::test]
async fn without_requests_it_ends_at_once() {
    let mut up = up(&["--engines", "2"]);
    up.interrupt();
    assert_eq!(up.wait(Duration::from_secs(10)).code(), Some(0));
}

async fn interrupted_stream_is_finished(mut running: Running) {
    let client = Client::new(running.url());
    let body = streamed_chat(&document(1, 300), "Tell all!", 300);
    let mut stream = client.open("/v1/chat/completions", &body).await.expect("a stream");
    stream.next().await.expect("a first event");
    running.interrupt();
    assert!(stream.rest().await.expect("the whole stream").ends_with("data: [DONE]\n\n"));
    let status = tokio::task::spawn_blocking(move || running.wait(ENDS_WITHIN)).await.expect("waited");
    assert_eq!(status.code(), Some(0));
}
