//! Whole stories of hours in paused time, with instances that only say that they run.

mod failed_updates;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use isotherm_config::{Config, Environment, Overrides};
use isotherm_fleet::Clock as FleetClock;
use isotherm_telemetry::Metrics;
use isotherm_wire::aws::Caller;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::*;
use crate::ControlPlane;
use crate::deployment::NoAlarms;
use crate::providers::{Doing, Provider, Reached, Standing};

/// Instances at made-up URLs, each of which comes so much later than the one before.
#[derive(Debug, Default)]
struct Scripted {
    ordered: AtomicUsize,
    gap: Duration,
    /// While it is set, nothing comes.
    fails: AtomicBool,
    /// The image that each instance runs which was ordered.
    images: Mutex<HashMap<String, String>>,
}

impl Provider for Scripted {
    fn start(&self, order: InstanceOrder) -> watch::Receiver<Standing> {
        self.images.lock().insert(order.instance, order.image.unwrap_or_default());
        if self.fails.load(Ordering::Relaxed) {
            return watch::channel(Standing::Failed("no GPU".to_owned())).1;
        }
        let number = self.ordered.fetch_add(1, Ordering::Relaxed);
        let url = format!("http://instance-{number}").parse().unwrap();
        let (sender, receiver) = watch::channel(Standing::Starting);
        let wait = self.gap * u32::try_from(number).unwrap();
        tokio::spawn(async move {
            sleep(wait).await;
            sender.send_replace(Standing::Running(Reached { url, api_key: None, tls: None, health: None }));
        });
        receiver
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
    store: Arc<Store>,
    reconciling: Reconciling,
    provider: Arc<Scripted>,
    folder: TempDir,
}

impl Story {
    fn begin() -> Story {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(&folder.path().join("store")).unwrap());
        let story = Story::over(folder, store, Scripted::default());
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

    /// The process ends, and the next one finds its instances coming one after the other.
    async fn again(self, gap: Duration) -> Story {
        self.restarted(Scripted { gap, ..Scripted::default() }).await
    }

    async fn restarted(self, provider: Scripted) -> Story {
        self.reconciling.shutdown().await;
        Story::over(self.folder, self.store, provider)
    }

    fn over(folder: TempDir, store: Arc<Store>, provider: Scripted) -> Story {
        let file = folder.path().join("isotherm.yaml");
        std::fs::write(
            &file,
            "aws: {data_dir: data}\nendpoints: [{name: taken, variants: [{name: v, instances: []}]}]",
        )
        .unwrap();
        let config = Config::load(Some(&file), &Environment::default(), &Overrides::default()).unwrap();
        let fleet = Fleet::new(&config, Arc::new(Metrics::new("test")), FleetClock::start());
        let provider = Arc::new(provider);
        let providers = Providers::only(Arc::clone(&provider) as Arc<dyn Provider>);
        let settings = Settings::of_account("123456789012");
        let reconciler = Reconciler::new(Arc::clone(&store), fleet.clone(), providers, Arc::new(NoAlarms), settings);
        let reconciling = reconciler.spawn();
        let control = ControlPlane::new(Arc::clone(&store), reconciling.deployer());
        Story { control, fleet, store, reconciling, provider, folder }
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
async fn what_is_written_is_told_before_anybody_can_read_it() {
    let story = Story::begin();
    story.run("CreateEndpoint", json!({ "EndpointName": "ep", "EndpointConfigName": "m" }));
    let read = || read_all(&story.store).unwrap().remove(0).1;
    let (before, mut after, mut told) = (read(), read(), 0);
    after.record.as_mut().unwrap().failure_reason = Some("it is so".to_owned());
    let mut tell = || {
        told += 1;
        assert_eq!(read(), before);
    };
    assert!(write(&story.store, &before, &after, &mut tell).unwrap());
    assert_eq!(read(), after);
    // What an operation has changed in the meantime is neither written nor told.
    assert!(!write(&story.store, &before, &before, &mut tell).unwrap());
    assert_eq!((told, read()), (1, after));
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

impl Story {
    /// A configuration of variants, each of a name, a model and a weight, with two instances.
    fn config(&self, name: &str, variants: &[(&str, &str, f64)]) {
        let variant = |&(name, model, weight): &(&str, &str, f64)| {
            json!({
                "VariantName": name, "ModelName": model, "InstanceType": "ml.m5.large", "InitialInstanceCount": 2,
                "InitialVariantWeight": weight
            })
        };
        let variants: Vec<_> = variants.iter().map(variant).collect();
        self.run("CreateEndpointConfig", json!({ "EndpointConfigName": name, "ProductionVariants": variants }));
    }

    /// Name, revision and weight of the variants that are routed to.
    fn routed(&self, endpoint: &str) -> Vec<(String, u64, f64)> {
        let topology = self.fleet.topology();
        let shares = topology.endpoint(endpoint).unwrap().variants().iter();
        shares.map(|share| (share.variant.name().to_string(), share.variant.revision(), share.weight)).collect()
    }

    /// The homes of a thousand keys.
    fn homes(&self, endpoint: &str) -> Vec<String> {
        let topology = self.fleet.topology();
        let variant = &topology.endpoint(endpoint).unwrap().variants()[0].variant;
        let now = self.fleet.clock().now();
        let home = |key: u128| {
            let key = isotherm_core::PrefixKey::from_u128(key.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
            let order = variant.order(key, None, now);
            let first = order.iter().find(|one| one.eligible).unwrap();
            first.now.instance.id().to_string()
        };
        (0..1_000).map(home).collect()
    }

    async fn scale(&self, endpoint: &str, count: u32) {
        let desired = json!([{ "VariantName": "v", "DesiredInstanceCount": count }]);
        let input = json!({ "EndpointName": endpoint, "DesiredWeightsAndCapacities": desired });
        self.run("UpdateEndpointWeightsAndCapacities", input);
        self.settled(endpoint).await;
    }
}

#[tokio::test(start_paused = true)]
async fn variants_that_stay_the_same_keep_their_instances_and_both_configurations_spread_by_their_weights() {
    let story = Story::begin();
    story.config("old", &[("a", "m", 1.0), ("b", "m", 1.0)]);
    story.config("new", &[("a", "m", 3.0), ("b", "n", 1.0)]);
    story.run("CreateEndpoint", json!({ "EndpointName": "ep", "EndpointConfigName": "old" }));
    story.settled("ep").await;
    let traffic = json!({ "Type": "CANARY", "WaitIntervalInSeconds": 600,
        "CanarySize": { "Type": "CAPACITY_PERCENT", "Value": 50 } });
    let deployment = json!({ "BlueGreenUpdatePolicy": { "TrafficRoutingConfiguration": traffic } });
    let input = json!({ "EndpointName": "ep", "EndpointConfigName": "new", "DeploymentConfig": deployment });
    story.run("UpdateEndpoint", input);
    sleep(Duration::from_secs(60)).await;
    let of = |name: &str, revision: u64, weight: f64| (name.to_owned(), revision, weight);
    assert_eq!(story.routed("ep"), [of("a", 1, 1.875), of("b", 1, 0.75), of("b", 2, 0.375)], "of three");
    story.settled("ep").await;
    assert_eq!(story.routed("ep"), [of("a", 1, 3.0), of("b", 2, 1.0)]);
    let ids: Vec<_> = story.fleet.list().iter().map(|one| one.id.to_string()).collect();
    assert_eq!(ids, ["a-0", "a-1", "b-2", "b-3"]);
    story.reconciling.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_fifth_instance_takes_a_fifth_of_the_keys_and_gives_them_back_when_it_goes() {
    let story = Story::begin();
    story.run("CreateEndpoint", json!({ "EndpointName": "ep", "EndpointConfigName": "m" }));
    story.settled("ep").await;
    let four = story.homes("ep");
    story.scale("ep", 5).await;
    let five = story.homes("ep");
    let moved = four.iter().zip(&five).filter(|(before, after)| before != after);
    assert!(moved.clone().all(|(_, after)| after == "v-4"), "keys move only to the one that came");
    let moved = moved.count();
    assert!((160..240).contains(&moved), "{moved} of 1000 moved");
    story.scale("ep", 4).await;
    assert_eq!(story.homes("ep"), four);
    story.reconciling.shutdown().await;
}

/// An endpoint `ic` on two instances of four accelerators, with managed scaling by this policy; and a component of two
/// copies that need one each.
async fn hosting(policy: Value) -> Story {
    let story = Story::begin();
    let variant = json!({
        "VariantName": "v", "InstanceType": "ml.g5.12xlarge", "InitialInstanceCount": 2,
        "ManagedInstanceScaling": {
            "Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 4, "ScaleInPolicy": policy
        }
    });
    let role = "arn:aws:iam::123456789012:role/r";
    let input = json!({ "EndpointConfigName": "hosts", "ProductionVariants": [variant], "ExecutionRoleArn": role });
    story.run("CreateEndpointConfig", input);
    story.run("CreateEndpoint", json!({ "EndpointName": "ic", "EndpointConfigName": "hosts" }));
    story.settled("ic").await;
    let specification = json!({
        "ModelName": "m",
        "ComputeResourceRequirements": { "NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 128 }
    });
    let input = json!({ "InferenceComponentName": "c", "EndpointName": "ic", "VariantName": "v",
        "Specification": specification, "RuntimeConfig": { "CopyCount": 2 } });
    story.run("CreateInferenceComponent", input);
    sleep(Duration::from_secs(5)).await;
    story
}

impl Story {
    /// How many instances the variant has.
    fn instances(&self) -> u64 {
        self.described("ic")["ProductionVariants"][0]["CurrentInstanceCount"].as_u64().unwrap()
    }

    /// The copies that are routed to.
    fn copies(&self) -> Vec<String> {
        self.fleet.list().iter().map(|one| one.id.to_string()).collect()
    }

    async fn set_copies(&self, count: u32) {
        let runtime = json!({ "CopyCount": count });
        let input = json!({ "InferenceComponentName": "c", "DesiredRuntimeConfig": runtime });
        self.run("UpdateInferenceComponentRuntimeConfig", input);
        sleep(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn instances_that_hold_nothing_go_after_their_cool_down() {
    let story = hosting(json!({ "Strategy": "IDLE_RELEASE", "CooldownInMinutes": 5 })).await;
    story.set_copies(9).await;
    assert_eq!((story.instances(), story.copies().len()), (3, 9), "eight fit on two");
    story.set_copies(1).await;
    sleep(Duration::from_secs(280)).await;
    assert_eq!(story.instances(), 3, "not yet");
    sleep(Duration::from_secs(30)).await;
    assert_eq!(story.instances(), 2, "one at a time");
    sleep(Duration::from_secs(310)).await;
    assert_eq!(story.instances(), 1);
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!((story.instances(), story.copies()), (1, vec!["c-0".to_owned()]));
    story.reconciling.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn copies_move_together_where_consolidation_is_asked_for() {
    let story = hosting(json!({ "Strategy": "CONSOLIDATION", "CooldownInMinutes": 5 })).await;
    assert_eq!((story.instances(), story.copies()), (2, vec!["c-0".to_owned(), "c-1".to_owned()]));
    sleep(Duration::from_secs(320)).await;
    assert_eq!((story.instances(), story.copies()), (1, vec!["c-0".to_owned(), "c-2".to_owned()]));
    let component = story.run("DescribeInferenceComponent", json!({ "InferenceComponentName": "c" }));
    assert_eq!(component["InferenceComponentStatus"], "InService");
    story.reconciling.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn instances_that_come_back_are_routed_to_as_they_come() {
    let story = Story::begin();
    story.run("CreateEndpoint", json!({ "EndpointName": "ep", "EndpointConfigName": "m" }));
    story.settled("ep").await;
    let story = story.again(Duration::from_secs(7)).await;
    for come in 1..=4 {
        sleep(Duration::from_millis(500)).await;
        let count = &story.described("ep")["ProductionVariants"][0]["CurrentInstanceCount"];
        assert_eq!((story.fleet.list().len(), count), (come, &json!(come)));
        sleep(Duration::from_millis(6_500)).await;
    }
    assert_eq!(story.described("ep")["EndpointStatus"], "InService");
    story.reconciling.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_shadow_changes_when_all_traffic_has_moved() {
    let story = Story::begin();
    let shadowed = |name: &str, model: &str| {
        let variant = |name: &str, weight: f64| {
            json!({
                "VariantName": name, "ModelName": model, "InstanceType": "ml.m5.large", "InitialInstanceCount": 1,
                "InitialVariantWeight": weight
            })
        };
        let input = json!({ "EndpointConfigName": name, "ProductionVariants": [variant("v", 2.0)],
            "ShadowProductionVariants": [variant("s", 1.0)] });
        story.run("CreateEndpointConfig", input);
    };
    shadowed("old", "m");
    shadowed("new", "n");
    let shadow = || {
        let topology = story.fleet.topology();
        let share = topology.endpoint("ep").unwrap().shadow().unwrap().clone();
        (share.variant.revision(), share.weight, share.variant.instances(story.fleet.clock().now()).len())
    };
    story.run("CreateEndpoint", json!({ "EndpointName": "ep", "EndpointConfigName": "old" }));
    story.settled("ep").await;
    assert_eq!((story.routed("ep"), shadow()), (vec![("v".to_owned(), 1, 2.0)], (1, 1.0, 1)));
    let traffic = json!({ "Type": "CANARY", "WaitIntervalInSeconds": 600,
        "CanarySize": { "Type": "CAPACITY_PERCENT", "Value": 50 } });
    let deployment = json!({ "BlueGreenUpdatePolicy": { "TrafficRoutingConfiguration": traffic } });
    let input = json!({ "EndpointName": "ep", "EndpointConfigName": "new", "DeploymentConfig": deployment });
    story.run("UpdateEndpoint", input);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(shadow(), (1, 1.0, 1));
    story.settled("ep").await;
    assert_eq!(shadow(), (2, 1.0, 1));
    story.reconciling.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_process_knows_when_everything_is_back() {
    let story = Story::begin();
    story.run("CreateEndpoint", json!({ "EndpointName": "ep", "EndpointConfigName": "m" }));
    assert!(story.reconciling.back(Duration::from_secs(60)).await.is_empty(), "there was nothing before");
    story.settled("ep").await;
    let story = story.again(Duration::from_secs(7)).await;
    let began = Instant::now();
    assert_eq!(story.reconciling.back(Duration::from_secs(5)).await, ["ep"]);
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    assert!(story.reconciling.back(Duration::from_secs(60)).await.is_empty());
    assert!(seconds(21, 23).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert_eq!(story.fleet.list().len(), 4);

    // What has failed is waited for by nobody.
    let story = story.restarted(Scripted { fails: true.into(), ..Scripted::default() }).await;
    let began = Instant::now();
    assert!(story.reconciling.back(Duration::from_secs(60)).await.is_empty());
    assert!(began.elapsed() < Duration::from_secs(1));
    story.reconciling.shutdown().await;
}
