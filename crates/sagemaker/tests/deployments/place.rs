//! A control plane with a data plane, a fleet and a provider of emulated engines, in this process.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use isotherm_config::{Config, Environment, Overrides};
use isotherm_emulator::{EmulatorConfig, RunningEmulator};
use isotherm_fleet::{Clock, Fleet, FleetTasks};
use isotherm_proxy::{DataPlane, Settings as ProxySettings};
use isotherm_sagemaker::ControlPlane;
use isotherm_sagemaker::deployment::{AlarmSource, Reconciler, Reconciling, Settings};
use isotherm_sagemaker::providers::{Doing, InstanceOrder, Provider, Providers, Reached, Standing};
use isotherm_store::Store;
use isotherm_telemetry::{AccessLog, Metrics};
use isotherm_wire::aws::Caller;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

const ACCOUNT: &str = "123456789012";

/// Emulated engines, as many as are asked for; models named `broken` are not to be had.
#[derive(Debug, Default)]
pub(crate) struct Engines {
    running: Mutex<HashMap<String, (RunningEmulator, watch::Sender<Standing>)>>,
    pub(crate) started: Mutex<Vec<String>>,
}

impl Engines {
    /// The keys of those that run.
    pub(crate) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<_> = self.running.lock().keys().cloned().collect();
        keys.sort();
        keys
    }
}

impl Provider for Engines {
    fn start(&self, order: InstanceOrder) -> watch::Receiver<Standing> {
        self.started.lock().push(order.key.clone());
        if order.model.as_deref() == Some("broken") {
            return watch::channel(Standing::Failed("No accelerator is free.".to_owned())).1;
        }
        let config =
            EmulatorConfig { speed: 20.0, model: order.model.unwrap_or_default(), ..EmulatorConfig::default() };
        let engine = isotherm_emulator::start(config).unwrap();
        let url = engine.base_url().parse().unwrap();
        let reached = Reached { url, api_key: None, tls: None, health: None };
        let (sender, receiver) = watch::channel(Standing::Running(reached));
        self.running.lock().insert(order.key, (engine, sender));
        receiver
    }

    fn stop(&self, key: String) -> Doing<'_> {
        Box::pin(async move {
            let engine = self.running.lock().remove(&key);
            if let Some((engine, _)) = engine {
                engine.kill().await;
            }
        })
    }

    fn retain(&self, _: &HashSet<String>) -> Doing<'_> {
        Box::pin(async {})
    }

    fn shutdown(&self) -> Doing<'_> {
        self.running.lock().clear();
        Box::pin(async {})
    }
}

/// An alarm `slow`, whose state the test sets.
#[derive(Debug, Default)]
pub(crate) struct OneAlarm(pub(crate) Mutex<bool>);

impl AlarmSource for OneAlarm {
    fn in_alarm(&self, _: &str, names: &[String]) -> Option<String> {
        names.iter().find(|name| *name == "slow" && *self.0.lock()).cloned()
    }
}

/// Everything that it takes.
pub(crate) struct Place {
    pub(crate) engines: Arc<Engines>,
    pub(crate) alarm: Arc<OneAlarm>,
    pub(crate) fleet: Fleet,
    control: ControlPlane,
    directory: PathBuf,
    reconciling: Reconciling,
    data_plane: DataPlane,
    _tasks: FleetTasks,
}

impl Place {
    /// A place over the store in a directory, whatever lies in it.
    pub(crate) fn open(directory: &Path) -> Place {
        let file = directory.join("isotherm.yaml");
        std::fs::write(&file, "listen: 127.0.0.1:0\naws: {data_dir: data}\nendpoints: []\n").unwrap();
        let config = Config::load(Some(&file), &Environment::default(), &Overrides::default());
        let config = config.unwrap_or_else(|error| panic!("{error}"));
        let metrics = Arc::new(Metrics::new("test"));
        let fleet = Fleet::new(&config, Arc::clone(&metrics), Clock::start());
        let tasks = fleet.spawn();
        let store = Arc::new(Store::open(&directory.join("store")).unwrap());
        let (engines, alarm) = (Arc::<Engines>::default(), Arc::<OneAlarm>::default());
        let settings = Settings {
            settle: Duration::from_millis(50),
            drain: Duration::from_secs(20),
            ..Settings::of_account(ACCOUNT)
        };
        let providers = Providers::only(engines.clone());
        let reconciler = Reconciler::new(Arc::clone(&store), fleet.clone(), providers, alarm.clone(), settings);
        let reconciling = reconciler.spawn();
        let control = ControlPlane::new(store, reconciling.deployer());
        let settings = ProxySettings { threads: 1, ..ProxySettings::of(&config) };
        let data_plane = DataPlane::start(settings, fleet.clone(), metrics, AccessLog::off(), None).unwrap();
        Place {
            engines,
            alarm,
            fleet,
            control,
            directory: directory.to_owned(),
            reconciling,
            data_plane,
            _tasks: tasks,
        }
    }

    /// Where clients call.
    pub(crate) fn address(&self) -> SocketAddr {
        self.data_plane.address()
    }

    /// Runs an operation that succeeds.
    pub(crate) fn run(&self, operation: &str, input: Value) -> Value {
        self.control.run(&caller(), operation, &input).unwrap_or_else(|error| panic!("{operation}: {error:?}"))
    }

    /// A model whose container has this much of an environment.
    pub(crate) fn model(&self, name: &str) {
        let container = json!({ "Image": "vllm:1", "Environment": { "HF_MODEL_ID": name } });
        let role = "arn:aws:iam::123456789012:role/r";
        self.run("CreateModel", json!({ "ModelName": name, "PrimaryContainer": container, "ExecutionRoleArn": role }));
    }

    /// A configuration of one variant `v`.
    pub(crate) fn config(&self, name: &str, model: &str, count: u32, more: Value) {
        let mut variant = json!({
            "VariantName": "v", "ModelName": model, "InstanceType": "ml.m5.large", "InitialInstanceCount": count,
            "InitialVariantWeight": 1.0
        });
        variant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.run("CreateEndpointConfig", json!({ "EndpointConfigName": name, "ProductionVariants": [variant] }));
    }

    pub(crate) fn endpoint(&self) -> Value {
        self.run("DescribeEndpoint", json!({ "EndpointName": "ep" }))
    }

    pub(crate) fn component(&self, name: &str) -> Value {
        self.run("DescribeInferenceComponent", json!({ "InferenceComponentName": name }))
    }

    /// Creates the endpoint `ep` with this configuration and waits for it.
    pub(crate) async fn create(&self, config: &str) {
        self.run("CreateEndpoint", json!({ "EndpointName": "ep", "EndpointConfigName": config }));
        self.in_service().await;
    }

    /// Updates the endpoint and waits for it.
    pub(crate) async fn update(&self, config: &str, deployment: Value) {
        let mut input = json!({ "EndpointName": "ep", "EndpointConfigName": config });
        if !deployment.is_null() {
            input["DeploymentConfig"] = deployment;
        }
        self.run("UpdateEndpoint", input);
        self.in_service().await;
    }

    /// Changes the number of the variant's instances and waits for it.
    pub(crate) async fn scale(&self, count: u32) {
        let desired = json!([{ "VariantName": "v", "DesiredInstanceCount": count }]);
        self.run(
            "UpdateEndpointWeightsAndCapacities",
            json!({ "EndpointName": "ep", "DesiredWeightsAndCapacities": desired }),
        );
        self.in_service().await;
    }

    pub(crate) async fn in_service(&self) {
        self.until("InService", || self.endpoint()["EndpointStatus"] == "InService").await;
    }

    /// Waits until something is so; longer than 30 s is a failure.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_so() {
            assert!(Instant::now() < deadline, "not within 30 s: {what}; {:#}", self.list());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn list(&self) -> Value {
        self.control.run(&caller(), "DescribeEndpoint", &json!({ "EndpointName": "ep" })).unwrap_or_default()
    }

    /// The ids of the instances that requests for the endpoint may go to.
    pub(crate) fn routed(&self) -> Vec<String> {
        let mut ids: Vec<_> = self.fleet.list().iter().map(|one| one.id.to_string()).collect();
        ids.sort();
        ids
    }

    /// Ends as a process that is told to.
    pub(crate) async fn close(self) {
        self.reconciling.shutdown().await;
        self.data_plane.drain(Duration::from_secs(1)).await;
    }

    /// Ends as a process that is killed: nothing is told to anybody.
    pub(crate) async fn kill(self) {
        drop((self.reconciling, self.control));
        self.engines.running.lock().clear();
        self.data_plane.drain(Duration::ZERO).await;
        // The store is let go by the tasks that held it.
        let deadline = Instant::now() + Duration::from_secs(30);
        while let Err(error) = Store::open(&self.directory.join("store")) {
            assert!(Instant::now() < deadline, "{error}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn caller() -> Caller {
    Caller { account: ACCOUNT.to_owned(), region: "us-east-1".to_owned(), access_key: None, name: None }
}
