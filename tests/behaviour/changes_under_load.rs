//! An endpoint that changes in every way under 200 streams: none of them fails, and only those prefixes move that must.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use isotherm_tests::{Aws, Client, Metrics, Running, chat, document, eventually, streamed_chat};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::up;

const STREAMS: u64 = 200;
const DOCUMENTS: u64 = 180;
const WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_streams_outlast_every_change_of_their_endpoint() {
    let router = up(&["--engines", "1", "--speed", "10"]);
    let aws = Aws::new(router.url());
    aws.model("first", "vllm").await;
    aws.model("second", "vllm:2").await;
    aws.configure("warm", "first", 3, &prefix_aware(), Value::Null).await;
    aws.configure("plain", "first", 3, &json!({ "RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS" }), Value::Null).await;
    aws.configure("new", "second", 3, &prefix_aware(), Value::Null).await;
    aws.create("chat", "warm", 3).await;
    let load = Load::begin(&router, STREAMS).await;
    let began = homes(&router).await;

    for config in ["plain", "warm"] {
        aws.begin_update("chat", config, Value::Null).await;
        aws.in_service("chat", 3).await;
        load.of_all_streams().await;
    }
    assert_eq!(homes(&router).await, began, "a strategy that came back finds every prefix at home");

    // Of n instances that there are then, each new one draws 1/n of the prefixes, and nothing else moves.
    let mut before = began.clone();
    for instances in [4, 6] {
        let added = instances - before.iter().collect::<BTreeSet<_>>().len();
        scale(&aws, instances).await;
        load.of_all_streams().await;
        let after = homes(&router).await;
        let moved: Vec<_> = before.iter().zip(&after).filter(|(was, is)| was != is).map(|(_, is)| is).collect();
        assert!(moved.iter().all(|home| !before.contains(home)), "prefixes move to new instances only: {after:?}");
        assert_share(moved.len(), added as f64 / instances as f64, "of the prefixes move to the new instances");
        for home in after.iter().collect::<BTreeSet<_>>() {
            let held = after.iter().filter(|other| *other == home).count();
            assert_share(held, 1.0 / instances as f64, home);
        }
        before = after;
    }
    scale(&aws, 3).await;
    load.of_all_streams().await;
    assert_eq!(homes(&router).await, began, "prefixes of instances that went come back, no other moves");

    let half = json!({ "Type": "CAPACITY_PERCENT", "Value": 50 });
    let one = json!({ "Type": "INSTANCE_COUNT", "Value": 1 });
    let traffic = |traffic: Value| json!({ "BlueGreenUpdatePolicy": { "TrafficRoutingConfiguration": traffic } });
    let deployments = [
        ("new", traffic(json!({ "Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0 }))),
        ("warm", traffic(json!({ "Type": "CANARY", "WaitIntervalInSeconds": 1, "CanarySize": one }))),
        ("new", traffic(json!({ "Type": "LINEAR", "WaitIntervalInSeconds": 1, "LinearStepSize": half }))),
        ("warm", json!({ "RollingUpdatePolicy": { "MaximumBatchSize": one, "WaitIntervalInSeconds": 0 } })),
    ];
    let mut before = began;
    for (config, deployment) in deployments {
        aws.begin_update("chat", config, deployment.clone()).await;
        let described = aws.in_service("chat", 3).await;
        assert_eq!((&described["EndpointConfigName"], &described["FailureReason"]), (&json!(config), &Value::Null));
        load.of_all_streams().await;
        let after = homes(&router).await;
        assert!(after.iter().all(|home| !before.contains(home)), "{deployment}: every instance is new: {after:?}");
        assert_eq!(after.iter().collect::<BTreeSet<_>>().len(), 3, "{deployment}: {after:?}");
        assert_eq!(homes(&router).await, after, "{deployment}: and they stay");
        before = after;
    }

    let failures = load.end().await;
    assert!(failures.is_empty(), "{} failed, the first with {}", failures.len(), failures[0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_wait_for_room_outlast_every_change_of_their_endpoint() {
    const CLIENTS: u64 = 60;
    let router = up(&["--engines", "1", "--speed", "40"]);
    let aws = Aws::new(router.url());
    aws.model("first", "vllm").await;
    aws.model("second", "vllm:2").await;
    // Four streams run, all others wait.
    let bounded = json!({ "Tags": [{ "Key": "isotherm:max-in-flight", "Value": "2" }] });
    aws.configure("old", "first", 2, &prefix_aware(), bounded.clone()).await;
    aws.configure("new", "second", 2, &prefix_aware(), bounded).await;
    aws.create("chat", "old", 2).await;
    let load = Load::begin(&router, CLIENTS).await;

    let half = json!({ "Type": "CAPACITY_PERCENT", "Value": 50 });
    let traffic = |traffic: Value| json!({ "BlueGreenUpdatePolicy": { "TrafficRoutingConfiguration": traffic } });
    let deployments = [
        ("new", traffic(json!({ "Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0 }))),
        ("old", traffic(json!({ "Type": "CANARY", "WaitIntervalInSeconds": 1, "CanarySize": half }))),
        ("new", traffic(json!({ "Type": "LINEAR", "WaitIntervalInSeconds": 1, "LinearStepSize": half }))),
        ("old", json!({ "RollingUpdatePolicy": { "MaximumBatchSize": half, "WaitIntervalInSeconds": 0 } })),
    ];
    for (config, deployment) in deployments {
        many_wait(&router).await;
        aws.begin_update("chat", config, deployment).await;
        let described = aws.in_service("chat", 2).await;
        assert_eq!((&described["EndpointConfigName"], &described["FailureReason"]), (&json!(config), &Value::Null));
        load.of_all_streams().await;
    }
    for instances in [4, 1] {
        many_wait(&router).await;
        scale(&aws, instances).await;
        load.of_all_streams().await;
    }
    let failures = load.end().await;
    assert!(failures.is_empty(), "{} failed, the first with {}", failures.len(), failures[0]);
}

/// Most of the clients wait for room at this moment.
async fn many_wait(router: &Running) {
    eventually("many wait", WITHIN, async || {
        let waiting = Metrics::read(router.admin()).await.sum("isotherm_waiting_requests", &[("endpoint", "chat")]);
        (waiting >= 40.0).then_some(())
    })
    .await;
}

async fn scale(aws: &Aws, instances: usize) {
    let instances = instances as u64;
    aws.begin_scaling("chat", instances).await;
    aws.in_service("chat", instances).await;
}

/// Keys are random: so many of them are within three standard deviations of what the theory expects.
fn assert_share(number: usize, expected: f64, what: &str) {
    let keys = DOCUMENTS as f64;
    let deviation = (keys * expected * (1.0 - expected)).sqrt();
    let distance = (number as f64 - keys * expected).abs();
    assert!(distance <= 3.0 * deviation, "{number} of {DOCUMENTS} {what}; {expected:.3} of them should");
}

/// Clients, each of which streams one answer after the other.
struct Load {
    over: Arc<AtomicBool>,
    /// How many streams of each client are done.
    done: Arc<Vec<AtomicUsize>>,
    failures: Arc<Mutex<Vec<String>>>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    async fn begin(router: &Running, clients: u64) -> Load {
        let over = Arc::new(AtomicBool::new(false));
        let done: Arc<Vec<AtomicUsize>> = Arc::new((0..clients).map(|_| AtomicUsize::new(0)).collect());
        let failures = Arc::new(Mutex::new(Vec::new()));
        let clients = (0..clients).map(|number| {
            let client = Client::new(router.url());
            let request = streamed_chat(&document(number % DOCUMENTS, 400), "Tell all!", 30);
            let (over, done, failures) = (Arc::clone(&over), Arc::clone(&done), Arc::clone(&failures));
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    if let Err(failure) = stream(&client, &request).await {
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
                    }
                    if let Some(done) = usize::try_from(number).ok().and_then(|number| done.get(number)) {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        });
        let load = Load { clients: clients.collect(), over, done, failures };
        load.of_all_streams().await;
        load
    }

    /// Waits until every client is done with a stream that was under way, and with a further one.
    async fn of_all_streams(&self) {
        let before: Vec<usize> = self.done.iter().map(|done| done.load(Ordering::Relaxed)).collect();
        eventually("two more streams of each client", WITHIN, async || {
            let mut pairs = self.done.iter().zip(&before);
            pairs.all(|(done, before)| done.load(Ordering::Relaxed) >= before + 2).then_some(())
        })
        .await;
    }

    async fn end(self) -> Vec<String> {
        self.over.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.expect("a client that ends");
        }
        std::mem::take(&mut *self.failures.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One stream to its end; what was wrong with it otherwise.
async fn stream(client: &Client, request: &Value) -> Result<(), String> {
    let path = "/endpoints/chat/invocations-response-stream";
    let mut stream = client.open(path, request).await.map_err(|broken| broken.to_string())?;
    let mut frames = Vec::new();
    while let Some(piece) = stream.next().await.map_err(|broken| broken.to_string())? {
        frames.extend_from_slice(&piece);
    }
    let text = payloads(&frames).unwrap_or_default();
    if stream.status != 200 || !text.ends_with("data: [DONE]\n\n") {
        return Err(format!("{}: {}", stream.status, String::from_utf8_lossy(&frames)));
    }
    Ok(())
}

/// The payloads of an event stream's frames in a row, an exception's too; `None` unless all frames are whole.
fn payloads(mut frames: &[u8]) -> Option<String> {
    let mut text = Vec::new();
    let number = |bytes: &[u8]| Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize);
    while !frames.is_empty() {
        let (length, headers) = (number(frames.get(..4)?)?, number(frames.get(4..8)?)?);
        text.extend_from_slice(frames.get(12 + headers..length.checked_sub(4)?)?);
        frames = frames.get(length..)?;
    }
    String::from_utf8(text).ok()
}

/// The home of each document.
async fn homes(router: &Running) -> Vec<String> {
    let asked = (0..DOCUMENTS).map(|number| {
        let client = Client::new(router.url());
        tokio::spawn(async move {
            let question = chat(&document(number, 400), "Where?");
            let answer = client.post("/endpoints/chat/invocations", &question).await.ok();
            answer.header("x-isotherm-home").to_owned()
        })
    });
    let mut homes = Vec::new();
    for answered in asked.collect::<Vec<_>>() {
        homes.push(answered.await.expect("an answer"));
    }
    homes
}

fn prefix_aware() -> Value {
    json!({ "RoutingStrategy": "PREFIX_AWARE",
            "PrefixAwareRoutingConfig": { "PrefixLength": 1024, "ConcurrencyThreshold": 200 } })
}
