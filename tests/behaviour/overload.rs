//! Ten times more users than the engines can serve: those that are served get as much done as before.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use isotherm_tests::{Client, Engines, Metrics, Running, Stopwatch, document, eventually, streamed_chat};
use tokio::task::JoinSet;

/// So many requests run at a time: eight on each of two engines.
const ROOM: usize = 16;
/// How long a user waits that was told to come back later.
const COMES_BACK_AFTER: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
struct Counts {
    served: AtomicU32,
    shed: AtomicU32,
    /// How long those that were served waited for their answer to begin.
    waits: Mutex<Vec<Duration>>,
}

impl Counts {
    fn nearly_longest_wait(&self) -> Duration {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.sort_unstable();
        waits[waits.len() * 99 / 100]
    }
}

/// Lets that many users ask again and again.
async fn load(url: &str, users: usize, during: Duration) -> Arc<Counts> {
    let counts = Arc::new(Counts::default());
    let begun = Stopwatch::start();
    let mut asking = JoinSet::new();
    for user in 0..users as u64 {
        let (client, counts) = (Client::new(url), Arc::clone(&counts));
        asking.spawn(async move {
            let body = streamed_chat(&document(user % 8, 300), &format!("User {user}?"), 32);
            while begun.elapsed() < during {
                let asked = Stopwatch::start();
                let stream = client.open("/v1/chat/completions", &body).await.expect("an answer");
                match stream.status.as_u16() {
                    200 => {
                        counts.waits.lock().unwrap_or_else(PoisonError::into_inner).push(asked.elapsed());
                        stream.rest().await.expect("a whole stream");
                        if begun.elapsed() < during {
                            counts.served.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    429 => {
                        counts.shed.fetch_add(1, Ordering::Relaxed);
                        assert!(stream.headers.contains_key("retry-after"));
                        tokio::time::sleep(COMES_BACK_AFTER).await;
                    }
                    other => panic!("status {other}"),
                }
            }
        });
    }
    asking.join_all().await;
    counts
}

#[tokio::test]
async fn ten_times_the_load_gets_nine_tenths_of_the_peak_done() {
    // So slow that neither the router nor this test is what limits them.
    let engines = Engines::start(2, &["--speed", "1.5"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("isotherm.yaml");
    let mut text = String::from(
        "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\n\
         limits: { queue: { max_waiting: 16, timeout: 5s } }\n\
         endpoints:\n  - name: chat\n    variants:\n      - name: AllTraffic\n        instances:\n",
    );
    for (index, url) in engines.urls().iter().enumerate() {
        text += &format!("          - {{ id: {}, url: \"{url}\", max_in_flight: {} }}\n", Engines::id(index), ROOM / 2);
    }
    std::fs::write(&file, text).expect("written");
    let router = Running::start(&["serve", "--config", &file.display().to_string()]);
    let during = Duration::from_secs(6);
    load(router.url(), ROOM, Duration::from_secs(1)).await;
    let peak = load(router.url(), ROOM, during).await.served.load(Ordering::Relaxed);
    let memory = router.memory_kib();
    let over = load(router.url(), 10 * ROOM, during).await;
    // Connections of ten times as many users are all that it keeps more of.
    let grown = router.memory_kib().saturating_sub(memory);
    assert!(grown < 16 * 1024, "{grown} KiB more");
    // Nobody is let in who would wait for longer than the queue's time-out, and then for the first token.
    assert!(over.nearly_longest_wait() < Duration::from_secs(5 + 3), "{:?}", over.nearly_longest_wait());
    let (served, shed) = (over.served.load(Ordering::Relaxed), over.shed.load(Ordering::Relaxed));
    assert!(peak > 30, "too little to compare: {peak}");
    assert!(f64::from(served) >= 0.9 * f64::from(peak), "{served} of {peak} were served, {shed} shed");
    assert!(shed > 10 * ROOM as u32, "{shed} were shed");
    eventually("nothing is left", Duration::from_secs(10), async || {
        let metrics = Metrics::read(router.admin()).await;
        (metrics.in_flight() + metrics.sum("isotherm_waiting_requests", &[]) == 0.0).then_some(())
    })
    .await;
}
