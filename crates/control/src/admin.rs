//! The admin plane's listener and its open paths: metrics for Prometheus, health for whoever restarts the process.

use std::fmt;
use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use isotherm_config::ServerTls;
use isotherm_config::{Config, HostName};
use isotherm_fleet::Fleet;
use isotherm_proxy::RulesHandle;
use isotherm_telemetry::Metrics;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::alerts::Watchman;
use crate::answer::Problem;
use crate::api;
use crate::dashboard;
use crate::listener::Listener;
use crate::observer::Observer;
use crate::reload::Reloader;
use crate::token::AdminToken;

/// What the admin plane needs of the router.
#[derive(Clone)]
pub struct AdminState {
    /// The instances.
    pub fleet: Fleet,
    /// The figures.
    pub metrics: Arc<Metrics>,
    /// The data plane's rules, by which explanations are made.
    pub rules: RulesHandle,
    /// Reads the configuration again; `None` where there is no file.
    pub reloader: Option<Reloader>,
    /// Who holds it may change things.
    pub token: AdminToken,
    /// Names under which the admin plane may be called, beside addresses and `localhost`.
    pub hosts: Arc<[HostName]>,
    /// What is under way with managed endpoints; `None` where no control plane runs.
    pub deployments: Option<Arc<dyn Deployments>>,
    /// Who can analyse the last requests; `None` where nobody can.
    pub analyst: Option<Arc<dyn Analyst>>,
    /// What the router is told.
    pub config: ConfigInForce,
    /// Whether the data plane is draining, so that nothing new should be sent to it.
    pub draining: Arc<std::sync::atomic::AtomicBool>,
}

/// Who finds out from a log of requests what prompts share.
pub trait Analyst: Send + Sync {
    /// What can be found out from an access log, as JSON.
    ///
    /// # Errors
    ///
    /// Why nothing can be.
    fn analyse(&self, log: Vec<u8>, missed: u64) -> Result<String, String>;
}

/// The configuration in force; a reload replaces it.
pub type ConfigInForce = Arc<ArcSwap<Config>>;

/// Who knows what is under way with the endpoints of a control plane.
pub trait Deployments: Send + Sync {
    /// What is under way or has failed, of all accounts; those in service are not told of.
    fn under_way(&self) -> Vec<Deployment>;
}

/// A change of an endpoint that is under way, or failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Deployment {
    /// The endpoint's name.
    pub endpoint: String,
    /// The endpoint's status, in SageMaker's word.
    pub status: &'static str,
    /// The endpoint configuration that it goes to.
    pub config: String,
    /// Why it failed.
    pub failure: Option<String>,
}

impl fmt::Debug for AdminState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminState").finish_non_exhaustive()
    }
}

/// A bound admin plane, ready to serve.
#[derive(Debug)]
pub struct AdminPlane {
    listener: Listener,
    address: SocketAddr,
}

impl AdminPlane {
    /// Binds the listener; must be called within a runtime. With `tls`, what stands there when a client comes counts.
    pub async fn bind(listen: SocketAddr, tls: Option<Arc<ArcSwap<ServerTls>>>) -> io::Result<AdminPlane> {
        let listener = TcpListener::bind(listen).await?;
        Ok(AdminPlane { address: listener.local_addr()?, listener: Listener::new(listener, tls) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves as long as what is returned is polled, or until the opening is dropped. Before the opening, `/livez` says
    /// that the process lives, and everything else that it is starting.
    pub fn serve(self) -> (impl Future<Output = io::Result<()>> + Send, Opening) {
        let (whole, (observer, coming)) = (Arc::new(OnceLock::new()), oneshot::channel::<Observer>());
        let opening = Opening { address: self.address, whole: Arc::clone(&whole), observer };
        let door = Router::new().fallback(move |request| answer(Arc::clone(&whole), request));
        let serving = async move {
            tokio::select! {
                served = axum::serve(self.listener, door).into_future() => served,
                () = async { if let Ok(observer) = coming.await { observer.run().await } } => Ok(()),
            }
        };
        (serving, opening)
    }
}

/// Opens an admin plane that says as yet only that the process lives.
#[derive(Debug)]
pub struct Opening {
    address: SocketAddr,
    whole: Arc<OnceLock<Router>>,
    observer: oneshot::Sender<Observer>,
}

impl Opening {
    /// From now on everything is answered.
    pub fn open(self, state: AdminState) {
        let scheme = if state.config.load().admin.tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", self.address);
        let watchman = Watchman::new(Arc::clone(&state.config), Arc::clone(&state.metrics), url);
        let observer = Observer::new(state.fleet.clone(), Arc::clone(&state.metrics), watchman);
        self.whole.get_or_init(|| routes(state, observer.clone()));
        // Nobody is there to be told only where nobody is served any more.
        let _ = self.observer.send(observer);
    }
}

/// The answer of what there is, once it is there.
async fn answer(whole: Arc<OnceLock<Router>>, request: Request) -> Response {
    if let Some(whole) = whole.get() {
        let Ok(response) = TowerToHyperService::new(whole.clone()).call(request).await;
        return response;
    }
    match request.uri().path() {
        "/livez" => "alive\n".into_response(),
        "/readyz" => (StatusCode::SERVICE_UNAVAILABLE, "starting\n").into_response(),
        _ => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the router is starting; try again in a moment")
            .into_response(),
    }
}

fn routes(state: AdminState, observer: Observer) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .merge(dashboard::routes(&state))
        .merge(api::routes(&state, observer))
        .fallback(|| async {
            Problem::new(
                StatusCode::NOT_FOUND,
                "there is nothing here; see / (the dashboard), /metrics, /livez, /readyz, /api/instances, /api/overview",
            )
        })
        .with_state(state)
}

async fn metrics(State(state): State<AdminState>, headers: HeaderMap) -> Response {
    state.fleet.refresh_gauges();
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let exposition = state.metrics.expose(accept);
    ([(header::CONTENT_TYPE, exposition.content_type)], exposition.body).into_response()
}

async fn ready(State(state): State<AdminState>) -> Response {
    if state.draining.load(std::sync::atomic::Ordering::Acquire) {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n").into_response();
    }
    if state.fleet.is_ready() {
        "ready\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "no instance is available\n").into_response()
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[tokio::test]
    async fn before_its_state_has_come_it_says_that_it_lives_and_starts() {
        let whole = Arc::new(OnceLock::new());
        let ask = async |path: &str| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            answer(Arc::clone(&whole), request).await.status().as_u16()
        };
        assert_eq!([ask("/livez").await, ask("/readyz").await, ask("/metrics").await], [200, 503, 503]);
        whole.set(Router::new().route("/metrics", get(|| async { "" }))).unwrap();
        assert_eq!([ask("/metrics").await, ask("/nothing").await], [200, 404]);
    }
}
