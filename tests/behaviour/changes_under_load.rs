//! An endpoint that changes in every way under 200 streams: none of them fails, and only those prefixes move that must.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use isotherm_tests::{Client, Running, chat, document, eventually, streamed_chat};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::up;

const STREAMS: u64 = 200;
const DOCUMENTS: u64 = 60;
const WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_streams_outlast_every_change_of_their_endpoint() {
    let router = up(&["--engines", "1", "--speed", "10"]);
    let aws = Aws { client: Client::new(router.url()) };
    for model in ["first", "second"] {
        aws.call("CreateModel", json!({ "ModelName": model, "PrimaryContainer": { "Image": "vllm" } })).await;
    }
    aws.configure("warm", "first", &prefix_aware()).await;
    aws.configure("plain", "first", &json!({ "RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS" })).await;
    aws.configure("new", "second", &prefix_aware()).await;
    aws.call("CreateEndpoint", json!({ "EndpointName": "chat", "EndpointConfigName": "warm" })).await;
    aws.in_service(3).await;
    let load = Load::begin(&router).await;
    let began = homes(&router).await;

    for config in ["plain", "warm"] {
        aws.call("UpdateEndpoint", json!({ "EndpointName": "chat", "EndpointConfigName": config })).await;
        aws.in_service(3).await;
        load.of_all_streams().await;
    }
    assert_eq!(homes(&router).await, began, "a strategy that came back finds every prefix at home");

    aws.scale(5).await;
    load.of_all_streams().await;
    let scaled_out = homes(&router).await;
    let moved: Vec<&String> = began.iter().zip(&scaled_out).filter(|(was, is)| was != is).map(|(_, is)| is).collect();
    assert!(moved.iter().all(|home| !began.contains(home)), "prefixes move to new instances only: {scaled_out:?}");
    assert!((12..=36).contains(&moved.len()), "{} of {DOCUMENTS} moved; two fifths should", moved.len());

    aws.scale(3).await;
    load.of_all_streams().await;
    assert_eq!(homes(&router).await, began, "prefixes of instances that went come back, no other moves");

    let canary = json!({ "BlueGreenUpdatePolicy": { "TrafficRoutingConfiguration": {
        "Type": "CANARY", "WaitIntervalInSeconds": 1, "CanarySize": { "Type": "INSTANCE_COUNT", "Value": 1 } } } });
    let update = json!({ "EndpointName": "chat", "EndpointConfigName": "new", "DeploymentConfig": canary });
    aws.call("UpdateEndpoint", update).await;
    let described = aws.in_service(3).await;
    assert_eq!(described["EndpointConfigName"], "new", "{described}");
    load.of_all_streams().await;
    let green = homes(&router).await;
    assert_eq!(homes(&router).await, green);
    assert!(green.iter().all(|home| !began.contains(home)), "every instance is a new one: {green:?}");
    assert_eq!(green.iter().collect::<BTreeSet<_>>().len(), 3, "{green:?}");

    let failures = load.end().await;
    assert!(failures.is_empty(), "{} failed, the first with {}", failures.len(), failures[0]);
}

/// 200 clients, each of which streams one answer after the other.
struct Load {
    over: Arc<AtomicBool>,
    /// How many streams of each client are done.
    done: Arc<Vec<AtomicUsize>>,
    failures: Arc<Mutex<Vec<String>>>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    async fn begin(router: &Running) -> Load {
        let over = Arc::new(AtomicBool::new(false));
        let done: Arc<Vec<AtomicUsize>> = Arc::new((0..STREAMS).map(|_| AtomicUsize::new(0)).collect());
        let failures = Arc::new(Mutex::new(Vec::new()));
        let clients = (0..STREAMS).map(|number| {
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

/// SageMaker's control plane, called as its clients do.
struct Aws {
    client: Client,
}

impl Aws {
    async fn call(&self, operation: &str, input: Value) -> Value {
        let client = self.client.clone().with_header("x-amz-target", &format!("SageMaker.{operation}"));
        client.with_header("content-type", "application/x-amz-json-1.1").post("/", &input).await.ok().json()
    }

    async fn configure(&self, name: &str, model: &str, routing: &Value) {
        let variant = json!({ "VariantName": "AllTraffic", "ModelName": model, "InstanceType": "ml.p5.48xlarge",
                              "InitialInstanceCount": 3, "RoutingConfig": routing });
        let config = json!({ "EndpointConfigName": name, "ProductionVariants": [variant] });
        self.call("CreateEndpointConfig", config).await;
    }

    async fn scale(&self, instances: u64) {
        let desired = json!([{ "VariantName": "AllTraffic", "DesiredInstanceCount": instances }]);
        let update = json!({ "EndpointName": "chat", "DesiredWeightsAndCapacities": desired });
        self.call("UpdateEndpointWeightsAndCapacities", update).await;
        self.in_service(instances).await;
    }

    /// Waits until the endpoint is in service with that many instances.
    async fn in_service(&self, instances: u64) -> Value {
        eventually("the endpoint is in service", WITHIN, async || {
            let described = self.call("DescribeEndpoint", json!({ "EndpointName": "chat" })).await;
            let there = described["ProductionVariants"][0]["CurrentInstanceCount"] == instances;
            (there && described["EndpointStatus"] == "InService").then_some(described)
        })
        .await
    }
}

fn prefix_aware() -> Value {
    json!({ "RoutingStrategy": "PREFIX_AWARE",
            "PrefixAwareRoutingConfig": { "PrefixLength": 1024, "ConcurrencyThreshold": 200 } })
}
