//! Sends traces and metrics to an OpenTelemetry collector: OTLP over HTTP in its JSON form, on the control runtime.
//!
//! A receiver that is away costs the router a bounded queue and nothing else: what does not fit is dropped and counted.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use isotherm_config::Otlp;
use isotherm_fleet::{Address, InstanceTls};
use isotherm_telemetry::otlp::{Sender, metrics, traces};
use isotherm_telemetry::{FinishedSpan, Metrics};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How often finished requests are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How many requests one message tells of, at most.
const BATCH: usize = 512;

/// How long a receiver may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a batch is sent again when the receiver is away or busy, with a pause that doubles before each.
const ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The most that is read of an answer.
const LARGEST_ANSWER: usize = 64 << 10;

/// Sends what the router knows.
pub struct OtlpExporter {
    address: Address,
    tls: Option<InstanceTls>,
    authorization: Option<HeaderValue>,
    sender: Sender,
    interval: Duration,
    metrics: Arc<Metrics>,
    began: SystemTime,
}

/// Why a message was not taken.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("no answer within {} s", PATIENCE.as_secs())]
    TooSlow,
    #[error("no connection: {0}")]
    Away(#[source] std::io::Error),
    #[error("no answer: {0}")]
    Broken(#[from] Box<dyn std::error::Error + Send + Sync>),
    #[error("answered {0}")]
    Answered(StatusCode),
}

impl OtlpExporter {
    /// An exporter of these metrics, and of the traces that they note from now on. `instance` tells this router from
    /// others; `authorization` goes with every message.
    pub fn new(
        otlp: &Otlp,
        instance: String,
        version: &'static str,
        authorization: Option<HeaderValue>,
        metrics: Arc<Metrics>,
    ) -> OtlpExporter {
        let address = Address::of(otlp.endpoint.clone());
        metrics.spans().set(Some(otlp.sample_ratio));
        OtlpExporter {
            tls: InstanceTls::at(&address, None),
            address,
            authorization,
            sender: Sender { service: otlp.service_name.clone(), instance, version },
            interval: otlp.metrics_interval.max(LOOK_EVERY),
            metrics,
            began: SystemTime::now(),
        }
    }

    /// Sends for as long as it is polled.
    pub async fn run(self) {
        let mut metrics_due = Instant::now();
        let mut complained = false;
        loop {
            let finished = self.metrics.spans().take(BATCH);
            let more = finished.len() == BATCH;
            if !finished.is_empty() {
                complain(&mut complained, self.send_traces(&finished).await);
            }
            if metrics_due <= Instant::now() {
                metrics_due = Instant::now() + self.interval;
                let exposed = self.metrics.expose(None).body;
                let body = metrics(&self.sender, &exposed, self.began, SystemTime::now());
                complain(&mut complained, self.send("/v1/metrics", body.into()).await);
            }
            if !more {
                sleep(LOOK_EVERY).await;
            }
        }
    }

    /// Sends a batch, again while the receiver is away or busy; then it is dropped.
    async fn send_traces(&self, finished: &[FinishedSpan]) -> Result<(), Refused> {
        let body = Bytes::from(traces(&self.sender, finished));
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            match self.send("/v1/traces", body.clone()).await {
                Ok(()) => return Ok(()),
                Err(refused) if attempt < ATTEMPTS && refused.may_pass() => sleep(pause).await,
                Err(refused) => {
                    self.metrics.spans().drop_some(finished.len() as u64);
                    return Err(refused);
                }
            }
            pause *= 2;
        }
        Ok(())
    }

    async fn send(&self, path: &str, body: Bytes) -> Result<(), Refused> {
        timeout(PATIENCE, self.exchange(path, body)).await.unwrap_or(Err(Refused::TooSlow))
    }

    async fn exchange(&self, path: &str, body: Bytes) -> Result<(), Refused> {
        let stream = self.address.dial(self.tls.as_ref()).await.map_err(Refused::Away)?;
        let answer = async {
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            // Ends with this function, however that ends.
            let mut driver = JoinSet::new();
            driver.spawn(connection);
            let answer = sender.send_request(self.request(path, body)?).await?;
            let status = answer.status();
            // Told to the end, so that the receiver sees no broken connection.
            let _ = Limited::new(answer.into_body(), LARGEST_ANSWER).collect().await;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(status)
        };
        match answer.await? {
            status if status.is_success() => Ok(()),
            status => Err(Refused::Answered(status)),
        }
    }

    fn request(&self, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>, http::Error> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}{path}", self.address.base_path()))
            .header(HOST, self.address.authority())
            .header(USER_AGENT, concat!("isotherm/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.body(Full::new(body))
    }
}

impl Refused {
    /// Whether it may be taken later: those of OTLP's statuses, and a receiver that is away.
    fn may_pass(&self) -> bool {
        match self {
            Refused::Answered(status) => matches!(status.as_u16(), 429 | 502 | 503 | 504),
            Refused::TooSlow | Refused::Away(_) | Refused::Broken(_) => true,
        }
    }
}

/// Says so once, and once more when it goes well again.
fn complain(complained: &mut bool, sent: Result<(), Refused>) {
    match (sent, *complained) {
        (Err(refused), false) => {
            tracing::warn!(%refused, "traces and metrics are not taken by the OTLP receiver");
            *complained = true;
        }
        (Ok(()), true) => {
            tracing::info!("traces and metrics are taken by the OTLP receiver again");
            *complained = false;
        }
        _ => {}
    }
}

impl std::fmt::Debug for OtlpExporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtlpExporter").field("endpoint", &self.address.url()).finish_non_exhaustive()
    }
}
