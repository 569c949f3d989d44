//! Drives a plan against a target: closed-loop users, each with its own connection, on one thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::Full;
use isotherm_report::RequestRecord;
use isotherm_workload::{CHARACTERS_PER_TOKEN, Counter, Plan, PlannedRequest, Prediction, TextWriter, TraceError};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};

use crate::clock::Clock;
use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::validity::Lag;
use crate::{Options, Progress, Target, chat};

/// Sends the plan's requests until as many were sent as the options say, and waits for the last answers.
///
/// Every user sends one request at a time and thinks between them, and all are busy until the last request was sent.
/// Blocks; must not be called inside an asynchronous runtime.
///
/// # Errors
/// When the target cannot be reached at all. Requests that fail later are records like all others.
pub fn run(
    target: &Target,
    plan: &Plan,
    text_seed: u64,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Run, RunError> {
    let runtime = current_thread_runtime().map_err(RunError::Runtime)?;
    runtime.block_on(drive(target, plan, text_seed, options, progress))
}

/// What happened in a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// One record for each request, in the order in which they were sent.
    pub records: Vec<RequestRecord>,
    /// How late users woke from thinking: how late the load generator was altogether.
    pub client_lag: Lag,
    /// Bytes of all request bodies.
    pub request_bytes: u64,
    /// How long the run took on the wall clock.
    pub wall: Duration,
    planned: Vec<PlannedRequest>,
}

impl Run {
    /// What counting predicts for the measured requests over that many instances; `None` if there were none.
    pub fn prediction(&self, instances: u32) -> Option<Prediction> {
        let mut counter = Counter::new(instances);
        for (planned, record) in self.planned.iter().zip(&self.records) {
            counter.count(planned, !record.warm_up);
        }
        counter.prediction()
    }
}

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot start a runtime: {0}")]
    Runtime(#[source] io::Error),
    #[error("cannot reach the target: {0}")]
    Unreachable(String),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("{target} does not answer a first chat completion: {detail}")]
    Probe { target: String, detail: String },
}

/// A runtime on the calling thread.
pub(crate) fn current_thread_runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Tokio's timer counts whole milliseconds: waking this late is no sign of a full machine.
pub(crate) const TIMER_STEP: Duration = Duration::from_millis(1);

/// What all users of a run share.
struct Shared {
    target: Arc<Target>,
    options: Options,
    writer: TextWriter,
    clock: Clock,
    sent: AtomicU64,
    all_sent: watch::Sender<bool>,
}

impl Shared {
    /// The number of the next request, or `None` when all have been sent.
    fn next_sequence(&self) -> Option<u64> {
        let total = self.options.warm_up + self.options.requests;
        let sequence = self.sent.fetch_add(1, Relaxed);
        if sequence + 1 >= total {
            self.all_sent.send_replace(true);
        }
        (sequence < total).then_some(sequence)
    }
}

/// A request that ended.
struct Ended {
    record: RequestRecord,
    planned: PlannedRequest,
    request_bytes: u64,
    woke_late: Duration,
}

async fn drive(
    target: &Target,
    plan: &Plan,
    text_seed: u64,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Run, RunError> {
    let target = Arc::new(target.clone());
    let mut first = Connection::new(Arc::clone(&target), options.connect_timeout);
    let sender = first.take().await.map_err(|failure| RunError::Unreachable(failure.detail))?;
    first.keep(sender);

    let begin = Instant::now();
    let shared = Arc::new(Shared {
        writer: TextWriter::new(text_seed)
            .with_characters_per_token(options.characters_per_token.unwrap_or(CHARACTERS_PER_TOKEN)),
        clock: Clock::start(options.speed),
        sent: AtomicU64::new(0),
        all_sent: watch::Sender::new(false),
        options: options.clone(),
        target: Arc::clone(&target),
    });
    let (ended, mut results) = mpsc::unbounded_channel();
    for user in 0..plan.users() {
        let connection = match user {
            0 => std::mem::replace(&mut first, Connection::new(Arc::clone(&target), options.connect_timeout)),
            _ => Connection::new(Arc::clone(&target), options.connect_timeout),
        };
        tokio::spawn(be_user(user, plan.user(user), connection, Arc::clone(&shared), ended.clone()));
    }
    drop(ended);

    let mut all: Vec<Ended> = Vec::new();
    while let Some(ended) = results.recv().await {
        progress.request_ended(ended.record.failure.is_some());
        all.push(ended);
    }
    let wall = begin.elapsed();
    all.sort_unstable_by_key(|ended| ended.record.sequence);
    Ok(Run {
        client_lag: Lag::of(all.iter().map(|ended| ended.woke_late).collect()),
        request_bytes: all.iter().map(|ended| ended.request_bytes).sum(),
        wall,
        planned: all.iter().map(|ended| ended.planned.clone()).collect(),
        records: all.into_iter().map(|ended| ended.record).collect(),
    })
}

/// One user's life: think, send, read, and again, until all requests of the run have been sent. The text is written
/// before the think time, so that it costs no time of the request.
async fn be_user(
    user: u32,
    requests: impl Iterator<Item = PlannedRequest>,
    mut connection: Connection,
    shared: Arc<Shared>,
    ended: mpsc::UnboundedSender<Ended>,
) {
    let mut all_sent = shared.all_sent.subscribe();
    for planned in requests {
        let wake = Instant::now() + shared.clock.wall(planned.think);
        let body = chat::body(&planned, &shared.writer, shared.target.model(), &shared.options);
        let request_bytes = body.len() as u64;
        let request = http_request(&shared.target, body, None);
        tokio::select! {
            biased;
            _ = all_sent.wait_for(|all_sent| *all_sent) => return,
            () = tokio::time::sleep_until(wake.into()) => {}
        }
        let woke_late = Instant::now().saturating_duration_since(wake + TIMER_STEP);
        let Some(sequence) = shared.next_sequence() else { return };
        let exchange = Exchange::perform(&mut connection, request, &shared.clock, shared.options.request_timeout).await;
        let record = record(exchange, sequence, user, sequence < shared.options.warm_up);
        if ended.send(Ended { record, planned, request_bytes, woke_late }).is_err() {
            return;
        }
    }
}

/// The header by which a client tells the router its tenant (SageMaker's name for it).
const TENANT_HEADER: &str = "x-amzn-sagemaker-prefix-aware-id";

pub(crate) fn http_request(target: &Target, body: Bytes, tenant: Option<&str>) -> Request<Full<Bytes>> {
    let mut builder = target.request(chat::PATH).method(Method::POST).header(header::CONTENT_TYPE, "application/json");
    if let Some(tenant) = tenant {
        builder = builder.header(TENANT_HEADER, tenant);
    }
    match builder.body(Full::new(body)) {
        Ok(request) => request,
        Err(error) => unreachable!("the target's parts were checked when it was made: {error}"),
    }
}

fn record(exchange: Exchange, sequence: u64, user: u32, warm_up: bool) -> RequestRecord {
    RequestRecord {
        sequence,
        user,
        warm_up,
        send: exchange.send,
        first_token: exchange.first_token,
        end: exchange.end,
        instance: exchange.instance,
        reason: exchange.reason,
        home: exchange.home,
        prompt_tokens: exchange.usage.prompt_tokens,
        cached_tokens: exchange.usage.cached_tokens(),
        output_tokens: exchange.usage.completion_tokens,
        status: exchange.status,
        failure: exchange.failure,
    }
}

#[cfg(test)]
pub(crate) mod mock;
#[cfg(test)]
mod tests;
