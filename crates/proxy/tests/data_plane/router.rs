//! A router under test: a configuration, the fleet that it describes, and the data plane before it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use isotherm_config::{Config, Environment, Overrides};
use isotherm_core::Availability;
use isotherm_fleet::{Clock, Fleet, InstanceNow};
use isotherm_proxy::{DataPlane, Settings};
use isotherm_telemetry::{AccessLog, Metrics};
use isotherm_wire::aws::AwsService;

use crate::client::{Answer, Client, PATIENCE, get, until};
use crate::origin::Origin;
use crate::stopwatch::Stopwatch;

pub(crate) struct Router {
    pub(crate) plane: Option<DataPlane>,
    pub(crate) address: SocketAddr,
    pub(crate) fleet: Fleet,
    pub(crate) metrics: Arc<Metrics>,
    directory: tempfile::TempDir,
}

impl Router {
    /// A router before these instances, called `a`, `b`, … in this order, with further lines at the top of its file.
    pub(crate) fn before(origins: &[&Origin], top: &str) -> Router {
        let urls: Vec<String> = origins.iter().map(|origin| origin.url()).collect();
        Router::before_urls(&urls, top)
    }

    pub(crate) fn before_urls(urls: &[String], top: &str) -> Router {
        let instances: String =
            ('a'..='z').zip(urls).map(|(id, url)| format!("          - {{ id: {id}, url: \"{url}\" }}\n")).collect();
        Router::with_variant(&format!("        instances:\n{instances}"), top)
    }

    /// A router whose one variant has these further lines.
    pub(crate) fn with_variant(variant: &str, top: &str) -> Router {
        Router::with_endpoints(&format!("  - name: chat\n    variants:\n      - name: AllTraffic\n{variant}"), top)
    }

    /// A router with these endpoints.
    pub(crate) fn with_endpoints(endpoints: &str, top: &str) -> Router {
        Router::start(endpoints, top, &Environment::default(), None)
    }

    /// A router whose one variant has these further lines, and what the environment says.
    pub(crate) fn with_environment(variant: &str, environment: &Environment) -> Router {
        let endpoints = format!("  - name: chat\n    variants:\n      - name: AllTraffic\n{variant}");
        Router::start(&endpoints, "", environment, None)
    }

    /// A router with this one instance and what answers AWS's services.
    pub(crate) fn with_service(origin: &Origin, top: &str, service: Arc<dyn AwsService>) -> Router {
        let instances = format!("        instances: [{{ id: a, url: \"{}\" }}]\n", origin.url());
        let endpoints = format!("  - name: chat\n    variants:\n      - name: AllTraffic\n{instances}");
        Router::start(&endpoints, top, &Environment::default(), Some(service))
    }

    fn start(endpoints: &str, top: &str, environment: &Environment, service: Option<Arc<dyn AwsService>>) -> Router {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("isotherm.yaml");
        let text = format!("listen: 127.0.0.1:0\nexpose_decisions: true\n{top}endpoints:\n{endpoints}");
        std::fs::write(&file, &text).unwrap();
        let config = Config::load(Some(&file), environment, &Overrides::default());
        let config = config.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let metrics = Arc::new(Metrics::new("test"));
        let fleet = Fleet::new(&config, Arc::clone(&metrics), Clock::start());
        let settings = Settings { threads: 1, ..Settings::of(&config) };
        let plane = DataPlane::start(settings, fleet.clone(), Arc::clone(&metrics), AccessLog::off(), service).unwrap();
        let address = plane.address();
        Router { plane: Some(plane), address, fleet, metrics, directory }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut client = self.connect().await;
        client.send(request).await;
        client.answer().await
    }

    /// Waits until every client that has connected so far is accepted, one that has left since too. They are accepted in
    /// their order, by one thread: once this one is answered, none of them comes late.
    pub(crate) async fn accepts_all(&self) {
        assert_eq!(self.ask(get("/health")).await.status, 200);
    }

    /// The value of a metric, summed over the series whose labels hold all of these.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let text = self.metrics.expose(None).body;
        let of_metric = text.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
        of_metric
            .filter(|line| labels.iter().all(|label| line.contains(label)))
            .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum()
    }

    /// Waits until a metric has this value: what is counted of a request is counted behind its answer.
    pub(crate) async fn counts(&self, name: &str, labels: &[&str], value: f64) {
        let waiting = Stopwatch::start();
        while self.metric(name, labels) != value {
            let counted = self.metric(name, labels);
            assert!(waiting.elapsed() < PATIENCE, "{name} {labels:?} is {counted}, not {value}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub(crate) fn instances(&self) -> Vec<InstanceNow> {
        let now = self.fleet.clock().now();
        self.fleet.topology().variants().flat_map(|variant| variant.instances(now)).collect()
    }

    pub(crate) fn availability(&self, id: &str) -> Availability {
        self.instances().into_iter().find(|one| one.instance.id().as_str() == id).unwrap().availability
    }

    /// Waits until nothing is in flight any more.
    pub(crate) async fn idle(&self) {
        until("nothing is in flight", || self.instances().iter().all(|one| one.in_flight == 0)).await;
    }
}

pub(crate) fn load(file: &Path) -> Result<Config, isotherm_config::ConfigError> {
    Config::load(Some(file), &Environment::default(), &Overrides::default())
}
