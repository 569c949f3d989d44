//! A whole router: data plane, admin plane, fleet and reloading, started from one configuration.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use http::HeaderValue;
use isotherm_config::{AccessLogTarget, Config, Otlp, Overrides};
use isotherm_control::{AdminPlane, AdminState, AdminToken, ConfigInForce, OtlpExporter, Reloader};
use isotherm_core::HashSeed;
use isotherm_fleet::{Clock, Fleet, FleetTasks, NewInstance};
use isotherm_proxy::{DataPlane, Drained, Rules, Settings};
use isotherm_telemetry::{AccessLog, Metrics};

use crate::analyst::OwnRequests;
use crate::aws::Cloud;
use crate::exit::Failure;
use crate::inherited;
use crate::signals::Hangups;

/// How long the last lines of the access log may take to be written.
const FLUSH: Duration = Duration::from_secs(2);

/// How long instances are given to say what they serve before clients are let in.
const FIRST_WORD: Duration = Duration::from_secs(1);

/// How long the endpoints that were in service before this process are given to be routed to again before clients are
/// let in: those that were started by it, or found again, are back at once; an engine that loads its model may take minutes.
const ENDPOINTS_BACK: Duration = Duration::from_secs(5);

/// What a router is started from.
pub(crate) struct Setup {
    /// What it is told.
    pub(crate) config: Config,
    /// The file that the configuration came from, and what overrides it when it is read again.
    pub(crate) file: Option<(PathBuf, Overrides)>,
    /// Instances beside those of the configuration, which this process started itself.
    pub(crate) started: Vec<NewInstance>,
}

/// A running router.
pub(crate) struct Router {
    data_plane: DataPlane,
    /// SageMaker's control plane and what goes with it.
    cloud: Option<Cloud>,
    /// Probes and DNS end when it is dropped.
    _tasks: FleetTasks,
    admin_address: SocketAddr,
    token_path: PathBuf,
    draining: Arc<AtomicBool>,
    access_log: AccessLog,
    /// How long new requests are still taken once it is told to stop.
    delay: Duration,
    grace: Duration,
}

/// The runtime for everything but the data plane, which has threads of its own.
pub(crate) fn control_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("control")
        .enable_all()
        .build()
        .map_err(|error| Failure::running("runtime", error))
}

impl Router {
    /// Starts everything; requests are served when it returns.
    pub(crate) async fn start(setup: Setup) -> Result<Router, Failure> {
        let Setup { config, file, started } = setup;
        let metrics = Arc::new(Metrics::new(env!("CARGO_PKG_VERSION")));
        metrics.config_loaded(SystemTime::now());
        observe(&config, &metrics);
        let access_log = open_access_log(&config.access_log, &metrics)?;

        for warning in config.warnings(SystemTime::now()) {
            tracing::warn!("{warning}");
        }
        let inherited = inherited::listener(config.listen)?;
        // Bound first: a port that is taken should be told before anything else happens.
        let admin_tls = config.admin.tls.clone().map(|tls| Arc::new(ArcSwap::from_pointee(tls)));
        let admin = AdminPlane::bind(config.admin.listen, admin_tls.clone())
            .await
            .map_err(|error| cannot_listen("admin plane", config.admin.listen, "--admin-port", error))?;
        let admin_address = admin.address();
        // Served at once, too: whoever asks whether this process lives should not have to wait until all is back.
        let (serving, opening) = admin.serve();
        tokio::spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "the admin plane has stopped");
            }
        });

        if let Some(otlp) = &config.otlp {
            tokio::spawn(otlp_exporter(otlp, admin_address, &metrics)?.run());
        }
        let fleet = Fleet::new(&config, Arc::clone(&metrics), Clock::start());
        for instance in started {
            fleet.add_instance(instance).map_err(|error| Failure::Running(error.to_string()))?;
        }
        let tasks = fleet.spawn();

        let cloud = config.aws.as_ref().map(|aws| Cloud::open(aws, &fleet)).transpose()?;
        if let Some(cloud) = &cloud {
            cloud.back(ENDPOINTS_BACK).await;
        }
        hear_of_instances(&fleet).await;

        let settings = Settings { inherited, ..Settings::of(&config) };
        let front_door = cloud.as_ref().map(Cloud::front_door);
        let started = DataPlane::start(settings, fleet.clone(), Arc::clone(&metrics), access_log.clone(), front_door);
        let data_plane = match started {
            Ok(data_plane) => data_plane,
            Err(error) => {
                if let Some(cloud) = cloud {
                    cloud.shutdown().await;
                }
                return Err(cannot_listen("data plane", config.listen, "--port", error));
            }
        };

        let (token, token_path) = match &config.admin.token_file {
            Some(path) => AdminToken::read(path).map(|token| (token, path.clone())),
            None => AdminToken::make(admin_address.port()),
        }
        .map_err(|error| Failure::Running(error.to_string()))?;
        let (delay, grace) = (config.timeouts.shutdown_delay, config.timeouts.shutdown_grace);
        let hosts = config.admin.hosts.clone().into();
        let in_force: ConfigInForce = Arc::new(ArcSwap::from_pointee(config.clone()));
        let told = Arc::clone(&in_force);
        let reloader = file.map(|(path, overrides)| {
            let (fleet, rules, watching) = (fleet.clone(), data_plane.rules(), Arc::clone(&metrics));
            Reloader::new(path, overrides, config, Arc::clone(&metrics), move |config| {
                rules.set(Rules::of(config));
                if let (Some(tls), Some(slot)) = (&config.admin.tls, &admin_tls) {
                    slot.store(Arc::new(tls.clone()));
                }
                observe(config, &watching);
                told.store(Arc::new(config.clone()));
                fleet.apply(config);
            })
        });
        if let Some(reloader) = reloader.clone() {
            tokio::spawn(reloader.watch());
        }
        let mut hangups = Hangups::listen().map_err(|error| Failure::running("signals", error))?;
        let (on_hangup, log) = (reloader.clone(), access_log.clone());
        tokio::spawn(async move {
            loop {
                hangups.wait().await;
                log.reopen();
                if let Some(reloader) = &on_hangup {
                    reloader.reload();
                }
            }
        });
        let draining = Arc::new(AtomicBool::new(false));
        let rules = data_plane.rules();
        let deployments = cloud.as_ref().map(Cloud::deployments);
        let state = AdminState {
            fleet,
            metrics,
            rules,
            reloader,
            token,
            analyst: Some(Arc::new(OwnRequests)),
            hosts,
            deployments,
            config: in_force,
            draining: Arc::clone(&draining),
        };
        opening.open(state);
        Ok(Router { data_plane, cloud, _tasks: tasks, admin_address, token_path, draining, access_log, delay, grace })
    }

    /// Where clients go.
    pub(crate) fn address(&self) -> SocketAddr {
        self.data_plane.address()
    }

    /// Where metrics and the admin API are.
    pub(crate) fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// The file that holds the admin token.
    pub(crate) fn token_path(&self) -> &std::path::Path {
        &self.token_path
    }

    /// Says at once that nothing should be sent here any more; after the delay takes no new connections and lets requests
    /// under way finish within the grace period, or until `hurry` resolves.
    pub(crate) async fn drain(self, hurry: impl Future<Output = ()>) {
        self.draining.store(true, Ordering::Release);
        let (data_plane, cloud, grace) = (self.data_plane, self.cloud, self.grace);
        let ending = async move {
            tokio::time::sleep(self.delay).await;
            if data_plane.drain(grace).await == Drained::Truncating {
                tracing::warn!(?grace, "some requests were still under way and were ended");
            }
            if let Some(cloud) = cloud {
                cloud.shutdown().await;
            }
        };
        // Dropping the data plane within its drain ends everything at once.
        tokio::select! {
            () = ending => {}
            () = hurry => {}
        }
        let log = self.access_log;
        let _ = tokio::task::spawn_blocking(move || log.flush(FLUSH)).await;
    }
}

/// Waits a moment until every instance has said what it serves or has shown to be down, so that the first client finds
/// the models listed. One that does neither holds nothing up: it may take minutes to load its model.
async fn hear_of_instances(fleet: &Fleet) {
    let heard = async {
        while fleet.list().iter().any(|instance| instance.models.is_none() && instance.availability == "up") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // Past the time, they are heard of while requests are served.
    let _ = tokio::time::timeout(FIRST_WORD, heard).await;
}

/// How many of the last requests are kept as hashes.
fn observe(config: &Config, metrics: &Metrics) {
    let (memory, per_second) =
        config.diagnostics.as_ref().map_or((0, 0), |diagnostics| (diagnostics.memory, diagnostics.requests_per_second));
    metrics.traces().set(usize::try_from(memory).unwrap_or(usize::MAX), per_second);
    if config.access_log_prompts && config.hash_seed == HashSeed::default() {
        tracing::warn!(
            "access_log_prompts without a hash_seed: who reads the log can find out by trying which text a hash is of"
        );
    }
}

/// What sends traces and metrics; the name of this router is that of its host, and its admin port.
fn otlp_exporter(otlp: &Otlp, admin: SocketAddr, metrics: &Arc<Metrics>) -> Result<OtlpExporter, Failure> {
    let authorization = match &otlp.authorization_env {
        None => None,
        Some(variable) => {
            let value = std::env::var(variable).ok().and_then(|value| HeaderValue::from_str(&value).ok());
            let missing =
                || Failure::Usage(format!("otlp.authorization_env: {variable} is not set, or no header can hold it"));
            Some(value.ok_or_else(missing)?)
        }
    };
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = format!("{}:{}", host.trim(), admin.port());
    Ok(OtlpExporter::new(otlp, name, env!("CARGO_PKG_VERSION"), authorization, Arc::clone(metrics)))
}

fn open_access_log(target: &AccessLogTarget, metrics: &Metrics) -> Result<AccessLog, Failure> {
    match target {
        AccessLogTarget::Off => Ok(AccessLog::off()),
        AccessLogTarget::Stderr => AccessLog::to_stderr(metrics).map_err(|error| Failure::running("access log", error)),
        AccessLogTarget::File(path) => AccessLog::to_file(path, metrics)
            .map_err(|error| Failure::running(format!("access log {}", path.display()), error)),
    }
}

fn cannot_listen(what: &str, address: SocketAddr, flag: &str, error: io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => format!("; another process listens there: choose another port with {flag}"),
        io::ErrorKind::PermissionDenied => "; ports below 1024 need a privilege".to_owned(),
        _ => String::new(),
    };
    Failure::Running(format!("the {what} cannot listen on {address}: {error}{hint}"))
}
