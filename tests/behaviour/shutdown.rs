//! Ctrl-C: what runs finishes, then the process ends well.

use std::time::{Duration, Instant};

use isotherm_tests::{Client, Engines, Running, Stopwatch, document, eventually, streamed_chat};

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
    let engines = Engines::start(2, &["--speed", "10"]);
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

/// A router with a configuration of its own, and engines that take their time.
fn router_with(engines: &Engines, top: &str) -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().expect("a folder");
    let instances: Vec<String> = engines.urls().iter().map(|url| format!("{{ url: \"{url}\" }}")).collect();
    let variants = format!("[{{ name: AllTraffic, instances: [{}] }}]", instances.join(", "));
    let file = folder.path().join("isotherm.yaml");
    std::fs::write(&file, format!("auth: none\n{top}endpoints: [{{ name: chat, variants: {variants} }}]\n"))
        .expect("written");
    let router =
        Running::start(&["serve", "--port", "0", "--admin-port", "0", "--config", file.to_str().expect("a path")]);
    (folder, router)
}

#[tokio::test]
async fn readiness_ends_at_once_and_new_requests_are_taken_until_the_delay_is_over() {
    let engines = Engines::start(2, &["--speed", "50"]);
    let (_folder, mut router) = router_with(&engines, "timeouts: { shutdown_delay: 4s }\n");
    let (client, admin) = (Client::new(router.url()), Client::new(router.admin()));
    assert_eq!(admin.get("/readyz").await.status, 200);
    let interrupted = Instant::now();
    router.interrupt();
    eventually("it is ready no more", Duration::from_millis(1_000), async || {
        (admin.get("/readyz").await.status == 503).then_some(())
    })
    .await;
    assert_eq!(admin.get("/livez").await.status, 200);
    let question = isotherm_tests::chat("A", "question?");
    let mut answered = 0;
    while let Ok(answer) = client.try_post("/v1/chat/completions", &question).await {
        assert_eq!(answer.status, 200, "{:?} after the signal", interrupted.elapsed());
        answered += 1;
    }
    assert!(interrupted.elapsed() >= Duration::from_secs(4), "refused {:?} after it", interrupted.elapsed());
    assert!(answered > 0, "none was taken");
    let status = tokio::task::spawn_blocking(move || router.wait(ENDS_WITHIN)).await.expect("waited");
    assert_eq!(status.code(), Some(0));
    assert!(interrupted.elapsed() >= Duration::from_secs(4));
}

#[tokio::test]
async fn a_second_signal_ends_it_although_streams_are_under_way() {
    let engines = Engines::start(1, &["--speed", "1"]);
    let (_folder, mut router) = router_with(&engines, "timeouts: { shutdown_delay: 60s, shutdown_grace: 60s }\n");
    let body = streamed_chat(&document(1, 300), "Tell all!", 2_000);
    let mut stream = Client::new(router.url()).open("/v1/chat/completions", &body).await.expect("a stream");
    stream.next().await.expect("a first event");
    router.interrupt();
    eventually("it drains", Duration::from_secs(5), async || router.output().contains("draining").then_some(())).await;
    let again = Stopwatch::start();
    router.interrupt();
    let status = tokio::task::spawn_blocking(move || router.wait(ENDS_WITHIN)).await.expect("waited");
    assert_eq!(status.code(), Some(0));
    assert!(again.elapsed() < Duration::from_secs(5), "{:?}", again.elapsed());
    assert!(stream.rest().await.is_err(), "a stream that was cut looks whole");
}
