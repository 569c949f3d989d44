//! The concurrency threshold: below saturation no instance has more requests in flight, and what spills goes the same
//! way each time.

use std::time::Duration;

use isotherm_tests::{
    Client, Engines, Metrics, Stream, chat, document, engine_requests, eventually, highest_concurrency, streamed_chat,
};
use tokio::task::JoinSet;

use crate::serve;

const THRESHOLD: usize = 2;
const ENGINES: usize = 4;

#[tokio::test]
async fn eight_at_once_never_put_more_than_two_on_an_instance() {
    let engines = Engines::start(ENGINES, &["--speed", "10"]);
    let router = serve(&engines, &["--concurrency-threshold", "2"]);
    let client = Client::new(router.url());
    let document = document(1, 2_000);
    let (mut home, mut spilled) = (0, 0);
    for round in 0..3 {
        let mut requests = JoinSet::new();
        for number in 0..THRESHOLD * ENGINES {
            let (client, body) = (client.clone(), chat(&document, &format!("Round {round}, question {number}?")));
            requests.spawn(async move { client.post("/v1/chat/completions", &body).await.ok() });
        }
        for answer in requests.join_all().await {
            match answer.header("x-isotherm-reason") {
                "home" => home += 1,
                "spill" => spilled += 1,
                other => panic!("reason {other}"),
            }
        }
    }
    assert_eq!(home + spilled, 24);
    assert!(home >= 3 * THRESHOLD && spilled > 0, "{home} at home, {spilled} spilled");
    for url in engines.urls() {
        let highest = highest_concurrency(&engine_requests(&url).await);
        assert!(highest <= THRESHOLD, "{url} had {highest} at once");
    }
    let metrics = Metrics::read(router.admin()).await;
    assert_eq!(metrics.sum("isotherm_decisions_total", &[("reason", "home")]), home as f64);
    assert_eq!(metrics.sum("isotherm_decisions_total", &[("reason", "spill")]), spilled as f64);
}

#[tokio::test]
async fn spilled_requests_take_the_same_order_of_instances_each_time() {
    let engines = Engines::start(ENGINES, &["--speed", "1"]);
    let router = serve(&engines, &["--concurrency-threshold", "2"]);
    let first = Held::open(router.url(), THRESHOLD * ENGINES).await;
    for pair in first.instances.chunks(THRESHOLD) {
        assert_eq!(pair[0], pair[1], "{:?}", first.instances);
    }
    let home = &first.instances[0];
    for (instance, reason) in first.instances.iter().zip(&first.reasons) {
        assert_eq!(reason, if instance == home { "home" } else { "spill" });
    }
    drop(first.streams);
    eventually("all streams are given up", Duration::from_secs(5), async || {
        (Metrics::read(router.admin()).await.in_flight() == 0.0).then_some(())
    })
    .await;
    let second = Held::open(router.url(), THRESHOLD * ENGINES).await;
    assert_eq!(first.instances, second.instances);
}

#[tokio::test]
async fn at_saturation_the_order_stays_and_load_is_bounded() {
    let engines = Engines::start(ENGINES, &["--speed", "1"]);
    let router = serve(&engines, &["--concurrency-threshold", "2"]);
    let held = Held::open(router.url(), 24).await;
    let order: Vec<&String> = held.instances.iter().step_by(THRESHOLD).take(ENGINES).collect();
    let mut in_flight = [THRESHOLD; ENGINES];
    for (count, (instance, reason)) in held.instances.iter().zip(&held.reasons).enumerate().skip(THRESHOLD * ENGINES) {
        assert_eq!(reason, "saturated");
        let place = order.iter().position(|other| *other == instance).expect("an instance of the order");
        let bound = (1.25 * (count + 1) as f64 / ENGINES as f64).ceil() as usize;
        let first_within = in_flight.iter().position(|requests| *requests <= bound);
        assert_eq!(Some(place), first_within, "request {count}: {in_flight:?} in flight, bound {bound}");
        in_flight[place] += 1;
    }
    let highest = in_flight.iter().max();
    assert!(highest <= Some(&9), "one more than 1.25 times the mean at most: {in_flight:?}");
}

/// Streams with one beginning, opened one after another and all kept open.
struct Held {
    streams: Vec<Stream>,
    instances: Vec<String>,
    reasons: Vec<String>,
}

impl Held {
    async fn open(url: &str, count: usize) -> Held {
        let client = Client::new(url);
        let document = document(1, 1_500);
        let mut held = Held { streams: Vec::new(), instances: Vec::new(), reasons: Vec::new() };
        for number in 0..count {
            let body = streamed_chat(&document, &format!("Question {number}?"), 5_000);
            let stream = client.open("/v1/chat/completions", &body).await.expect("a stream");
            assert_eq!(stream.status, 200);
            let header = |name: &str| stream.headers[name].to_str().expect("visible ASCII").to_owned();
            held.instances.push(header("x-isotherm-instance"));
            held.reasons.push(header("x-isotherm-reason"));
            held.streams.push(stream);
        }
        held
    }
}
