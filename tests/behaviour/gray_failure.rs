//! An instance that answers, but ten times slower than the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use isotherm_tests::{Client, Engines, document, set_faults, streamed_chat};
use serde_json::json;
use tokio::task::JoinSet;

use crate::serve;

const USERS: usize = 12;

/// The share of the instance in what is asked within this time, each prompt a new one.
async fn share(url: &str, instance: &str, numbers: &Arc<AtomicU64>, during: Duration) -> f64 {
    let mut users = JoinSet::new();
    let until = Instant::now() + during;
    for _ in 0..USERS {
        let (client, instance, numbers) = (Client::new(url), instance.to_owned(), Arc::clone(numbers));
        users.spawn(async move {
            let (mut there, mut all) = (0, 0);
            while Instant::now() < until {
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                let body = streamed_chat(&document(number, 1_500), "What does it say?", 20);
                let stream = client.open("/v1/chat/completions", &body).await.expect("an answer");
                assert_eq!(stream.status, 200);
                there += u32::from(stream.headers["x-isotherm-instance"] == instance.as_str());
                all += 1;
                stream.rest().await.expect("a whole stream");
            }
            (there, all)
        });
    }
    let counts = users.join_all().await;
    let (there, all) = counts.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    f64::from(there) / f64::from(all)
}

#[tokio::test]
async fn adaptive_sends_little_to_an_instance_that_is_ten_times_slower() {
    let engines = Engines::start(4, &["--speed", "10"]);
    let router = serve(&engines, &["--strategy", "adaptive"]);
    let numbers = Arc::default();
    let slow = Engines::id(2);
    let fair = share(router.url(), &slow, &numbers, Duration::from_secs(3)).await;
    assert!((0.12..0.4).contains(&fair), "a fair share is a quarter: {fair:.3}");
    set_faults(&engines.urls()[2], &json!({"slow_factor": 10})).await;
    share(router.url(), &slow, &numbers, Duration::from_secs(5)).await;
    let left = share(router.url(), &slow, &numbers, Duration::from_secs(8)).await;
    println!("{left:.4} of the requests go there");
    // It gets what it can compute, a tenth of the others' share, and some more by trial. The aim is a fifth of a fair share.
    assert!(left < 0.05, "{left:.3} of the requests still go there");
}
