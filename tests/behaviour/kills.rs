//! kill −9 at any moment, also in the middle of a change: the next process goes on, and answers from its first moment.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use isotherm_store::{Store, Table};
use isotherm_tests::{Aws, Client, Running, chat, document, eventually, run};
use serde_json::{Value, json};
use tempfile::TempDir;

const WITHIN: Duration = Duration::from_secs(60);
/// Shorter than a start of the slow engines below.
const AT_ONCE: Duration = Duration::from_secs(2);

#[tokio::test]
async fn the_first_request_after_a_kill_is_answered_at_once_and_by_its_warm_engine() {
    let place = Place::new("");
    let mut router = place.start();
    let aws = Aws::new(router.url());
    aws.model("llama", "vllm").await;
    aws.configure("warm", "llama", 2, &prefix_aware(), Value::Null).await;
    aws.create("chat", "warm", 2).await;
    let before = first(&router).await;

    for _ in 0..3 {
        router.kill();
        router = place.start();
        let after = first(&router).await;
        assert_eq!(after.instance, before.instance);
        assert!(after.cached > 1_000, "the engine that ran on has the document still: {after:?}");
        assert!(after.took < AT_ONCE, "{after:?}");
    }
    let aws = Aws::new(router.url());
    assert_eq!(aws.describe("chat").await["EndpointStatus"], "InService");
    let _ = aws.try_call("DeleteEndpoint", json!({ "EndpointName": "chat" })).await.ok();
    eventually("the engines ended", WITHIN, async || place.processes().is_empty().then_some(())).await;
}

#[tokio::test]
async fn emulated_instances_are_there_again_when_the_router_says_that_it_is_ready() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().display().to_string();
    let start = || crate::up(&["--engines", "1", "--speed", "20", "--data-dir", &kept]);
    let mut router = start();
    let aws = Aws::new(router.url());
    aws.model("llama", "vllm").await;
    aws.configure("warm", "llama", 2, &prefix_aware(), Value::Null).await;
    aws.create("chat", "warm", 2).await;
    let before = first(&router).await;
    router.kill();
    let after = first(&start()).await;
    assert_eq!(after.instance, before.instance);
}

#[tokio::test]
async fn a_canary_that_bakes_goes_on_baking_and_ends() {
    let place = Place::new("");
    let mut router = place.start();
    let aws = Aws::new(router.url());
    aws.model("first", "vllm").await;
    aws.model("second", "vllm:2").await;
    aws.configure("old", "first", 2, &prefix_aware(), Value::Null).await;
    aws.configure("new", "second", 2, &prefix_aware(), Value::Null).await;
    aws.create("chat", "old", 2).await;
    let one = json!({ "Type": "INSTANCE_COUNT", "Value": 1 });
    let traffic = json!({ "Type": "CANARY", "WaitIntervalInSeconds": 10, "CanarySize": one });
    aws.begin_update("chat", "new", json!({ "BlueGreenUpdatePolicy": { "TrafficRoutingConfiguration": traffic } }))
        .await;
    let is_baking = async |aws: &Aws| {
        let described = aws.describe("chat").await;
        let pending = &described["PendingDeploymentSummary"]["ProductionVariants"][0];
        let (status, weight) = (&pending["VariantStatus"][0]["Status"], &pending["CurrentWeight"]);
        (described["EndpointStatus"] == "Updating" && status == "Baking").then(|| weight.clone())
    };
    let weight = eventually("the canary bakes", WITHIN, async || is_baking(&aws).await).await;
    let before = place.processes();
    assert_eq!((before.len(), &weight), (4, &json!(0.5)), "two old and two new ones");

    for _ in 0..2 {
        router.kill();
        router = place.start();
        first(&router).await;
        let baking = is_baking(&Aws::new(router.url())).await;
        assert_eq!(baking, Some(weight.clone()), "it was killed while the canary baked, and bakes still");
        assert_eq!(place.processes(), before, "every engine runs on");
    }
    let described = Aws::new(router.url()).in_service("chat", 2).await;
    assert_eq!((&described["EndpointConfigName"], &described["FailureReason"]), (&json!("new"), &Value::Null));
    let after = eventually("the old engines ended", WITHIN, async || {
        let now = place.processes();
        (now.len() == 2).then_some(now)
    });
    assert!(after.await.iter().all(|process| before.contains(process)), "no engine was started anew");
    first(&router).await;
}

#[tokio::test]
async fn a_scale_out_whose_engines_are_slow_goes_on_and_what_serves_is_not_disturbed() {
    let place = Place::new("sleep 3; ");
    let mut router = place.start();
    let aws = Aws::new(router.url());
    aws.model("llama", "vllm").await;
    aws.configure("warm", "llama", 1, &prefix_aware(), Value::Null).await;
    aws.create("chat", "warm", 1).await;
    aws.begin_scaling("chat", 3).await;
    eventually("the engines start", WITHIN, async || (place.processes().len() == 3).then_some(())).await;
    let before = place.processes();

    router.kill();
    router = place.start();
    let answer = first(&router).await;
    assert!(answer.took < AT_ONCE, "{answer:?}");
    let aws = Aws::new(router.url());
    let described = aws.describe("chat").await;
    let variant = &described["ProductionVariants"][0];
    let counts = (&variant["CurrentInstanceCount"], &variant["DesiredInstanceCount"]);
    assert_eq!((&described["EndpointStatus"], counts), (&json!("Updating"), (&json!(1), &json!(3))), "{described}");
    aws.in_service("chat", 3).await;
    assert_eq!(place.processes(), before, "the very engines that were starting when it was killed");
}

#[tokio::test]
async fn a_change_of_a_components_copies_goes_on() {
    let place = Place::new("sleep 3; ");
    let mut router = place.start();
    let aws = Aws::new(router.url());
    let scaling = json!({ "Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 1 });
    let hosts = json!({ "VariantName": "AllTraffic", "InstanceType": "ml.p5.48xlarge", "InitialInstanceCount": 1,
                        "ManagedInstanceScaling": scaling });
    let role = "arn:aws:iam::123456789012:role/SageMaker";
    let config = json!({ "EndpointConfigName": "hosts", "ProductionVariants": [hosts], "ExecutionRoleArn": role });
    aws.call("CreateEndpointConfig", config).await;
    aws.create("shared", "hosts", 1).await;
    let needs = json!({ "NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024 });
    let specification = json!({ "Container": { "Image": "vllm" }, "ComputeResourceRequirements": needs });
    let component = json!({ "InferenceComponentName": "llama", "EndpointName": "shared", "VariantName": "AllTraffic",
                            "Specification": specification, "RuntimeConfig": { "CopyCount": 1 } });
    aws.call("CreateInferenceComponent", component).await;
    aws.component_in_service("llama", 1).await;
    let more = json!({ "InferenceComponentName": "llama", "DesiredRuntimeConfig": { "CopyCount": 3 } });
    aws.call("UpdateInferenceComponentRuntimeConfig", more).await;
    eventually("the copies start", WITHIN, async || (place.processes().len() == 3).then_some(())).await;
    let before = place.processes();

    router.kill();
    router = place.start();
    let named = Client::new(router.url()).with_header("x-amzn-sagemaker-inference-component", "llama");
    let _ = named.post("/endpoints/shared/invocations", &chat("Hello", "Where?")).await.ok();
    let aws = Aws::new(router.url());
    let described = aws.describe_component("llama").await;
    let counts = &described["RuntimeConfig"];
    assert_eq!(described["InferenceComponentStatus"], "Updating", "{described}");
    assert_eq!((&counts["CurrentCopyCount"], &counts["DesiredCopyCount"]), (&json!(1), &json!(3)), "{described}");
    aws.component_in_service("llama", 3).await;
    assert_eq!(place.processes(), before, "the very copies that were starting when it was killed");
}

#[tokio::test]
async fn an_engine_that_dies_is_started_again_while_the_other_one_serves() {
    let place = Place::new("");
    let router = place.start();
    let aws = Aws::new(router.url());
    aws.model("llama", "vllm").await;
    aws.configure("warm", "llama", 2, &prefix_aware(), Value::Null).await;
    aws.create("chat", "warm", 2).await;
    first(&router).await;
    let before = place.processes();
    let home = first(&router).await.instance;
    let is_of_home = |process: &&(String, Value)| process.0.contains(&home);
    let dying = before.iter().find(is_of_home).expect("the process of the home").1.clone();
    end_group(&dying);
    // Its connections break, and whoever is sent to it until that is known is sent to the other one.
    first(&router).await;
    eventually("it is started again", WITHIN, async || {
        let now = place.processes();
        let another = now.iter().find(is_of_home).is_some_and(|process| process.1 != dying);
        (another && first(&router).await.instance == home).then_some(())
    })
    .await;
    let described = aws.in_service("chat", 2).await;
    assert_eq!(described["FailureReason"], Value::Null);
}

#[test]
fn a_store_that_can_not_be_read_is_refused_with_what_to_do_and_stays_as_it_is() {
    let place = Place::new("");
    let file = place.folder.path().join("state/isotherm.redb");
    let store = Store::open(file.parent().expect("a folder")).expect("a new store");
    store
        .write(|transaction| transaction.put(&Table::<String>::named("notes"), "a", &"b".repeat(9_000)))
        .expect("kept");
    drop(store);
    let whole = std::fs::read(&file).expect("a store");

    let mut overwritten = whole.clone();
    overwritten.iter_mut().skip(4_096).take(200_000).for_each(|byte| *byte ^= 0x5a);
    let damaged = "and was left untouched; put a copy from a backup in its place, or move it away to start empty";
    let cases = [
        (&overwritten[..], damaged),
        (&whole[..whole.len() / 2], damaged),
        (&whole[..100], damaged),
        (b"", damaged),
        (b"PK\x03\x04: no store at all", damaged),
    ];
    for (content, expected) in cases {
        std::fs::write(&file, content).expect("written");
        refused(&place, expected);
        assert!(std::fs::read(&file).expect("a file") == content, "not a byte is changed");
    }

    std::fs::write(&file, &whole).expect("written");
    let store = Store::open(file.parent().expect("a folder")).expect("the whole store");
    store.write(|transaction| transaction.put(&Table::<u64>::named("format"), "format", &2)).expect("kept");
    drop(store);
    let newer = std::fs::read(&file).expect("a store");
    refused(
        &place,
        "has format 2, and this version knows formats up to 1; it was left untouched: start the newer version",
    );
    assert!(std::fs::read(&file).expect("a file") == newer, "not a byte is changed");
}

/// The command says why it does not start, and ends.
fn refused(place: &Place, expected: &str) {
    let ended = run(&["serve", "--config", &place.configuration()]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("isotherm.redb") && ended.stderr.contains(expected), "{}", ended.stderr);
    assert!(!ended.stdout.contains("ready"), "{}", ended.stdout);
}

/// A data directory, and a configuration whose instances are engines in processes of their own.
struct Place {
    folder: TempDir,
}

impl Place {
    /// `before` is what the shell does before each engine.
    fn new(before: &str) -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let mut text = String::from("listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nexpose_decisions: true\n");
        let engine = isotherm_tests::binary();
        let command =
            json!(["sh", "-c", format!("{before}exec {} engine --port {{port}} --speed 20", engine.display())]);
        writeln!(text, "aws: {{ data_dir: state, providers: [{{ process: {{ command: {command} }} }}] }}")
            .expect("text");
        std::fs::write(folder.path().join("isotherm.yaml"), text).expect("written");
        Place { folder }
    }

    fn configuration(&self) -> String {
        self.folder.path().join("isotherm.yaml").display().to_string()
    }

    fn start(&self) -> Running {
        Running::start(&["serve", "--config", &self.configuration()])
    }

    /// The process ids of the engines that the router has noted to have started, by their notes' names.
    fn processes(&self) -> Vec<(String, Value)> {
        let listed = std::fs::read_dir(self.folder.path().join("state/processes"));
        let notes = listed.into_iter().flatten().flatten().map(|entry| entry.path());
        let process = |path: &Path| {
            let note: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
            let name = path.file_name()?.to_string_lossy().into_owned();
            (name.ends_with(".json") && note["pid"].is_i64()).then(|| (name, note["pid"].clone()))
        };
        let mut all: Vec<_> = notes.filter_map(|path| process(&path)).collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }
}

impl Drop for Place {
    /// Engines outlive a router that is killed.
    fn drop(&mut self) {
        for (_, process) in self.processes() {
            end_group(&process);
        }
    }
}

/// kill −9 for a process that leads a group, and for all of that.
fn end_group(process: &Value) {
    let group = process.as_i64().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[derive(Debug)]
struct First {
    instance: String,
    cached: u64,
    took: Duration,
}

/// Sends one request and no other: it has to be answered.
async fn first(router: &Running) -> First {
    let asked = Instant::now();
    let client = Client::new(router.url());
    let answer = client.post("/endpoints/chat/invocations", &chat(&document(7, 1_500), "Where?")).await.ok();
    // No details where nothing is cached.
    let cached = answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0);
    First { instance: answer.instance(), cached, took: asked.elapsed() }
}

fn prefix_aware() -> Value {
    json!({ "RoutingStrategy": "PREFIX_AWARE",
            "PrefixAwareRoutingConfig": { "PrefixLength": 1024, "ConcurrencyThreshold": 8 } })
}
