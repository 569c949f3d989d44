//! Runs an asynchronous invocation: its input goes the way of every request, its answer into a file.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use http_body_util::BodyExt;
use isotherm_wire::error::Dialect;
use isotherm_wire::sagemaker::{Fault, RuntimeError};

use super::backlog::Backlog;
use super::bucket::Place;
use super::job::Job;
use crate::call::Call;
use crate::headers::ascii;
use crate::prompt::{Form, Look, Read};
use crate::rescue::Failure;
use crate::route::{Route, RuntimeApi};
use crate::stage::admit::admit;
use crate::stage::decode::Decoded;
use crate::stage::finish::Record;
use crate::stage::forward::{Forwarded, forward};
use crate::stage::inspect::inspect;
use crate::stage::place::place;
use crate::stage::relay::relay;
use crate::stop::Phase;
use crate::worker::Worker;

/// How long to wait before another attempt where no instance could take the job.
const PAUSE: Duration = Duration::from_secs(1);
/// How long an endpoint is waited for that is not there: after a restart it may come a little later than its jobs.
const ENDPOINT_COMES: Duration = Duration::from_secs(60);

/// Runs a job to its end. One that this process can't run any more, because it stops, stays in the backlog.
pub(super) async fn run(job: Job, body: Bytes, backlog: Arc<Backlog>, worker: Rc<Worker>) {
    let outcome = tokio::select! {
        outcome = within_its_time(&job, body, &backlog, &worker) => outcome,
        () = worker.stop.reached(Phase::Truncating) => return,
    };
    let told = match outcome {
        Ok(()) => Ok(()),
        Err(Trouble::Stopping) => return,
        Err(Trouble::Failed(failure)) => tell(&job, &failure, &backlog, &worker).await,
        Err(Trouble::Unwritten(error)) => Err(error),
    };
    if let Err(error) = told {
        tracing::error!(%error, job = job.id, "what became of an asynchronous invocation cannot be written");
    }
    backlog.forget(&job).await;
}

/// Why there is no answer.
enum Trouble {
    /// It failed, as will be told.
    Failed(Failure),
    /// It was not begun, or broken off, because the router stops.
    Stopping,
    /// The answer could not be written.
    Unwritten(std::io::Error),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Trouble {
        match failure {
            Failure::Stopping => Trouble::Stopping,
            failure => Trouble::Failed(failure),
        }
    }
}

async fn within_its_time(job: &Job, body: Bytes, backlog: &Backlog, worker: &Rc<Worker>) -> Result<(), Trouble> {
    let expired = || Failure::from(RuntimeError::validation("The request waited longer than RequestTTLSeconds."));
    let left = job.expires().duration_since(SystemTime::now()).map_err(|_| expired())?;
    let (begun, ends) = (Instant::now(), Instant::now() + left);
    loop {
        let turn = tokio::time::timeout(ends.saturating_duration_since(Instant::now()), backlog.turn()).await;
        let turn = turn.map_err(|_| expired())?;
        if turn.is_none() || worker.stop.phase() > Phase::Serving {
            return Err(Trouble::Stopping);
        }
        let body = input(job, body.clone(), backlog, worker).await?;
        match attempt(job, body, backlog, worker).await {
            Err(Trouble::Failed(failure)) if may_pass(&failure, begun) => {}
            outcome => return outcome,
        }
        // Others may have an endpoint that can take them.
        drop(turn);
        let left = ends.saturating_duration_since(Instant::now());
        tokio::time::sleep(PAUSE.min(left)).await;
        if left <= PAUSE {
            return Err(expired().into());
        }
    }
}

/// Whether a failure is one that time heals: no instance had room, or the endpoint is still coming.
fn may_pass(failure: &Failure, begun: Instant) -> bool {
    match failure {
        Failure::Unavailable | Failure::QueueFull | Failure::QueueTimeout(_) | Failure::DeadlineInQueue(_) => true,
        Failure::Runtime(error) => {
            matches!(**error, RuntimeError::Validation { .. }) && begun.elapsed() < ENDPOINT_COMES && is_missing(error)
        }
        _ => false,
    }
}

fn is_missing(error: &RuntimeError) -> bool {
    matches!(error, RuntimeError::Validation { message, .. } if message.ends_with("not found."))
}

/// The input: what came with the request, or what lies at the place that it named.
async fn input(job: &Job, body: Bytes, backlog: &Backlog, worker: &Worker) -> Result<Bytes, Failure> {
    let Some(uri) = &job.input else { return Ok(body) };
    let place = Place::of(uri).map_err(|error| RuntimeError::validation(error.to_string()))?;
    let read = backlog.buckets.read(&place, worker.rules().limits.body).await;
    read.map(Bytes::from).map_err(|error| RuntimeError::validation(format!("{uri} cannot be read: {error}.")).into())
}

async fn attempt(job: &Job, body: Bytes, backlog: &Backlog, worker: &Rc<Worker>) -> Result<(), Trouble> {
    let (head, route) = request(job);
    let mut record = Record::begin(Rc::clone(worker), None, &head);
    let outcome = begin(job, head, route, body, &mut record).await;
    match outcome {
        Ok(answer) => {
            let place = Place::of(&job.answer).map_err(|error| std::io::Error::other(error.to_string()));
            write(answer, record, &place.map_err(Trouble::Unwritten)?, backlog).await
        }
        Err(failure) => {
            let failure = failure.of_call(&mut record);
            record.status = Some(failure.response(Dialect::SageMaker, 0).status().as_u16());
            record.end(failure.outcome());
            Err(failure.into())
        }
    }
}

/// The request as it would have come from a client that waits.
fn request(job: &Job) -> (Box<Parts>, Route) {
    let mut head = Box::new(Request::new(()).into_parts().0);
    head.method = http::Method::POST;
    head.uri = format!("/endpoints/{}/async-invocations", job.endpoint).parse().unwrap_or_default();
    head.headers = job.header_map();
    (head, Route::Runtime { endpoint: job.endpoint.clone(), api: RuntimeApi::Async })
}

/// The stages up to the answer.
async fn begin(
    job: &Job,
    head: Box<Parts>,
    route: Route,
    body: Bytes,
    record: &mut Record,
) -> Result<Forwarded, Failure> {
    record.route = Some(route.label());
    record.request_id = ascii(&job.id);
    record.signed.clone_from(&job.signed.as_ref().map(|(key, region)| (key.as_str().into(), region.as_str().into())));
    record.principal = holder(job, record)?;
    record.bytes_in = body.len() as u64;
    record.limit = Some(Duration::from_secs(job.timeout));
    record.call = Call::read(&route, &head.headers)?.map(Box::new);
    let form = Form::of(&route, &head.headers);
    let read = Read::new(body, form, Look::Nowhere, record.rules.hash_seed).map_err(Failure::Malformed)?;
    record.model.clone_from(&read.prompt.model);
    let placed = place(Decoded { route, head, read, credentials_pass: false }, record)?;
    let admitted = admit(placed, record).await?;
    let forwarded = forward(admitted, record).await?;
    inspect(forwarded, record).await
}

/// Whose key the request came with; a key that was taken away meanwhile lets nothing run.
fn holder(job: &Job, record: &Record) -> Result<Option<Arc<isotherm_config::KeyHolder>>, Failure> {
    let (Some(name), Some(keys)) = (&job.holder, &record.rules.keys) else { return Ok(None) };
    keys.holder_named(name).map(Some).ok_or(Failure::UnknownKey)
}

/// Writes an answer as it comes; it shows when it is whole.
async fn write(answer: Forwarded, record: Box<Record>, place: &Place, backlog: &Backlog) -> Result<(), Trouble> {
    let random = record.worker.random();
    let broken_off = record.call.as_ref().map(|call| {
        let status = answer.held.status().as_u16();
        Failure::from(call.model_error(Fault::BodyBrokeOff { status }, &record))
    });
    let mut writing = backlog.buckets.write(place, random).await.map_err(Trouble::Unwritten)?;
    let mut body = relay(answer, record).into_body();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(broken_off.unwrap_or(Failure::Broken).into()) };
        if let Ok(piece) = frame.into_data() {
            writing.append(&piece).await.map_err(Trouble::Unwritten)?;
        }
    }
    writing.finish().await.map_err(Trouble::Unwritten)
}

/// Writes what went wrong to the place of failures, as a client that waits would have been told.
async fn tell(job: &Job, failure: &Failure, backlog: &Backlog, worker: &Worker) -> std::io::Result<()> {
    let place = Place::of(&job.failure).map_err(|error| std::io::Error::other(error.to_string()))?;
    let mut writing = backlog.buckets.write(&place, worker.random()).await?;
    writing.append(failure.response(Dialect::SageMaker, 0).body()).await?;
    writing.finish().await
}
