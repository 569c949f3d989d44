//! Whole stories of hours in paused time, with instances that only say that they run.

use std::sync::atomic::{AtomicUsize, Ordering};

use isotherm_config::{Config, Environment, Overrides};
use isotherm_fleet::Clock as FleetClock;
use isotherm_telemetry::Metrics;
use isotherm_wire::aws::Caller;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::*;
use crate::ControlPlane;
use crate::deployment::NoAlarms;
use crate::providers::{Doing, Provider, Reached, Standing};

/// Instances at made-up URLs, which come at once.
#[derive(Debug, Default)]
struct Scripted {
    ordered: AtomicUsize,
}

impl Provider for Scripted {
    fn start(&self, _: InstanceOrder) -> watch::Receiver<Standing> {
        let url = format!("http://instance-{}", self.ordered.fetch_add(1, Ordering::Relaxed)).parse().unwrap();
        watch::channel(Standing::Running(Reached { url, api_key: None, health: None })).1
    }

    fn stop(&self, _: String) -> Doing<'_> {
        Box::pin(async {})
    }

    fn retain(&self, _: &HashSet<String>) -> Doing<'_> {
        Box::pin(async {})
    }

    fn shutdown(&self) -> Doing<'_> {
        Box::pin(async {})
    }
}

struct Story {
    control: ControlPlane,
    fleet: Fleet,
    reconciling: Reconciling,
    _folder: TempDir,
}

impl Story {
    fn begin() -> Story {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("isotherm.yaml");
        std::fs::write(
            &file,
            "aws: {data_dir: data}\nendpoints: [{name: taken, variants: [{name: v, instances: []}]}]",
        )
        .unwrap();
        let config = Config::load(Some(&file), &Environment::default(), &Overrides::default()).unwrap();
        let fleet = Fleet::new(&config, Arc::new(Metrics::new("test")), FleetClock::start());
        let store = Arc::new(Store::open(&folder.path().join("store")).unwrap());
        let providers = Providers::only(Arc::<Scripted>::default());
        let settings = Settings::of_account("123456789012");
        let reconciler = Reconciler::new(Arc::clone(&store), fleet.clone(), providers, Arc::new(NoAlarms), settings);
        let reconciling = reconciler.spawn();
        let control = ControlPlane::new(store, reconciling.deployer());
        let story = Story { control, fleet, reconciling, _folder: folder };
        for name in ["m", "n"] {
            let role = "arn:aws:iam::123456789012:role/r";
            let input = json!({ "ModelName": name, "PrimaryContainer": { "Image": name }, "ExecutionRoleArn": role });
            story.run("CreateModel", input);
            let variant = json!({
                "VariantName": "v", "ModelName": name, "InstanceType": "ml.m5.large", "InitialInstanceCount": 4
            });
            let input = json!({ "EndpointConfigName": name, "ProductionVariants": [variant] });
            story.run("CreateEndpointConfig", input);
        }
        story
    }

    fn run(&self, operation: &str, input: Value) -> Value {
        let (account, region) = ("123456789012".to_owned(), "us-east-1".to_owned());
        let caller = Caller { account, region, access_key: None, name: None };
        self.control.run(&caller, operation, &input).unwrap_or_else(|error| panic!("{operation}: {error:?}"))
    }

    fn described(&self, endpoint: &str) -> Value {
        self.run("DescribeEndpoint", json!({ "EndpointName": endpoint }))
    }

    /// Waits until the endpoint has left all states of change; how long that took.
    async fn settled(&self, endpoint: &str) -> Duration {
        let began = Instant::now();
        while !["InService", "Failed"].map(Value::from).contains(&self.described(endpoint)["EndpointStatus"]) {
            sleep(Duration::from_secs(1)).await;
        }
        began.elapsed()
    }
}

fn seconds(from: u64, to: u64) -> std::ops::Range<Duration> {
    Duration::from_secs(from)..Duration::from_secs(to)
}

#[tokio::test(start_paused = true)]
async fn a_linear_update_takes_as_long_as_its_waits() {
    let story = Story::begin();
    story.run("CreateEndpoint", json!({ "EndpointName": "ep", "EndpointConfigName": "m" }));
    assert!(story.settled("ep").await < Duration::from_secs(3));

    let traffic = json!({ "Type": "LINEAR", "WaitIntervalInSeconds": 600,
        "LinearStepSize": { "Type": "CAPACITY_PERCENT", "Value": 50 } });
    let policy = json!({ "TrafficRoutingConfiguration": traffic, "TerminationWaitInSeconds": 1800 });
    let deployment = json!({ "BlueGreenUpdatePolicy": policy });
    let input = json!({ "EndpointName": "ep", "EndpointConfigName": "n", "DeploymentConfig": deployment });
    story.run("UpdateEndpoint", input);
    sleep(Duration::from_secs(30)).await;
    let endpoint = story.described("ep");
    let coming = &endpoint["PendingDeploymentSummary"]["ProductionVariants"][0];
    assert_eq!((&coming["CurrentWeight"], &coming["VariantStatus"][0]["Status"]), (&json!(0.5), &json!("Baking")));
    let weights: Vec<_> =
        story.fleet.topology().endpoint("ep").unwrap().variants().iter().map(|it| it.weight).collect();
    assert_eq!(weights, [0.5, 0.5]);
    let took = story.settled("ep").await + Duration::from_secs(30);
    assert!(seconds(3_000, 3_010).contains(&took), "{took:?}");

    let endpoint = story.described("ep");
    assert_eq!(endpoint["LastDeploymentConfig"], deployment);
    assert_eq!(endpoint["ProductionVariants"][0]["CurrentInstanceCount"], 4);
    assert!(endpoint.get("PendingDeploymentSummary").is_none());
    story.reconciling.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_the_file_has_is_refused_with_what_to_do() {
    let story = Story::begin();
    story.run("CreateEndpoint", json!({ "EndpointName": "taken", "EndpointConfigName": "m" }));
    story.settled("taken").await;
    let reason = story.described("taken")["FailureReason"].as_str().unwrap().to_owned();
    assert_eq!(reason, "Isotherm's configuration file has an endpoint of this name: choose another name.");
    story.reconciling.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_can_be_deleted_in_the_middle_of_everything() {
    let story = Story::begin();
    story.run("CreateEndpoint", json!({ "EndpointName": "ep", "EndpointConfigName": "m" }));
    story.settled("ep").await;
    let traffic = json!({ "Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 600 });
    let deployment = json!({ "BlueGreenUpdatePolicy": { "TrafficRoutingConfiguration": traffic } });
    let input = json!({ "EndpointName": "ep", "EndpointConfigName": "n", "DeploymentConfig": deployment });
    story.run("UpdateEndpoint", input);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(story.fleet.list().len(), 8);
    story.run("DeleteEndpoint", json!({ "EndpointName": "ep" }));
    sleep(Duration::from_secs(10)).await;
    assert!(story.fleet.list().is_empty());
    assert_eq!(story.run("ListEndpoints", json!({}))["Endpoints"], json!([]));
    story.reconciling.shutdown().await;
}
