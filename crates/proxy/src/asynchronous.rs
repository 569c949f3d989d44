//! `InvokeEndpointAsync`: accepted at once, run by and by, answered into a file.

mod backlog;
mod bucket;
mod job;
mod run;

use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use isotherm_fleet::Topology;
use isotherm_telemetry::Outcome;
use isotherm_wire::aws::uuid;
use isotherm_wire::sagemaker::{
    AsyncInvocation, InputLocation, LONGEST_INLINE, Operation, RuntimeError, headers_of_operation,
};

pub(crate) use self::backlog::Backlog;
use self::bucket::{BadPlace, Place};
use self::job::{Job, whole_seconds};
use crate::call;
use crate::headers::ascii;
use crate::rescue::Failure;
use crate::stage::authenticate::authorize;
use crate::stage::decode::Decoded;
use crate::stage::finish::Record;
use crate::worker::Worker;

/// Where the answer will be.
const OUTPUT_LOCATION: HeaderName = HeaderName::from_static("x-amzn-sagemaker-outputlocation");
/// Where a failure will be told.
const FAILURE_LOCATION: HeaderName = HeaderName::from_static("x-amzn-sagemaker-failurelocation");
/// The bucket of answers whose endpoint names none.
const DEFAULT_OUTPUT: &str = "s3://isotherm-async";

/// Accepts a request, keeps it, and lets it run by itself.
pub(crate) async fn accept(request: Decoded, record: &mut Record) -> Result<Response<Bytes>, Failure> {
    let worker = Rc::clone(&record.worker);
    let Some(backlog) = worker.asynchronous.clone() else {
        let message = "Asynchronous inference is not served here: the router's configuration has no `aws` section.";
        return Err(RuntimeError::validation(message).into());
    };
    let asked = AsyncInvocation::parse(&request.head.headers).map_err(RuntimeError::from)?;
    let input = input(&asked, &request.read.body)?;
    let job = job(&request, &asked, input, record)?;
    let Some(room) = backlog.room() else { return Err(Failure::BacklogFull) };
    let body = request.read.body;
    if let Err(error) = backlog.keep(&job, &body, worker.random()).await {
        tracing::error!(%error, "an asynchronous invocation cannot be kept");
        return Err(Failure::Internal);
    }
    let inference_id = asked.inference_id.unwrap_or_else(|| job.id.clone());
    let response = accepted(&inference_id, &job);
    record.status = Some(response.status().as_u16());
    record.bytes_out = response.body().len() as u64;
    record.end(Outcome::Ok);
    tokio::task::spawn_local(async move {
        run::run(job, body, backlog, worker).await;
        drop(room);
    });
    Ok(response)
}

/// Lets run what an earlier process has accepted; to be called by every thread.
pub(crate) async fn resume(worker: Rc<Worker>) {
    let Some(backlog) = worker.asynchronous.clone() else { return };
    for (job, body) in backlog.left_over().await {
        let room = backlog.room();
        let (backlog, worker) = (Arc::clone(&backlog), Rc::clone(&worker));
        tokio::task::spawn_local(async move {
            run::run(job, body, backlog, worker).await;
            drop(room);
        });
    }
}

/// The place of the input; `None` where it is the body. One of the two it must be.
fn input(asked: &AsyncInvocation, body: &[u8]) -> Result<Option<Place>, RuntimeError> {
    match &asked.input_location {
        None if body.is_empty() => {
            Err(RuntimeError::validation("Give the input as the body, or its place as X-Amzn-SageMaker-InputLocation."))
        }
        None if body.len() as u64 > LONGEST_INLINE => Err(RuntimeError::validation(format!(
            "1 validation error detected: Value at 'body' failed to satisfy constraint: Member must have length less \
             than or equal to {LONGEST_INLINE}"
        ))),
        None => Ok(None),
        Some(_) if !body.is_empty() => {
            Err(RuntimeError::validation("Body and X-Amzn-SageMaker-InputLocation are mutually exclusive: give one."))
        }
        Some(InputLocation::S3 { bucket, key }) => Place::new(bucket, key).map(Some).map_err(bad_place),
        Some(InputLocation::Https(_)) => Err(RuntimeError::validation(
            "Inputs are read from places s3://BUCKET/KEY, which are files below the router's async_dir; https:// is not \
             read.",
        )),
    }
}

/// Refuses an input that is an answer of an endpoint which the request's key may not call.
fn check_readable(input: &Place, topology: &Topology, record: &Record) -> Result<(), Failure> {
    if input.is_below(DEFAULT_OUTPUT) {
        // ENDPOINT/…, or ACCOUNT/ENDPOINT/…; the endpoint may be gone.
        let uri = input.uri();
        let mut parts = uri.split('/').skip(3);
        let first = parts.next().unwrap_or_default();
        let is_account = first.len() == 12 && first.bytes().all(|byte| byte.is_ascii_digit());
        match parts.next().filter(|_| is_account) {
            Some(second) => authorize(&format!("{first}/{second}"), record)?,
            None => authorize(first, record)?,
        }
    }
    for endpoint in topology.endpoints() {
        let output = endpoint.async_output().into_iter();
        let mut places = output.flat_map(|output| [Some(&output.answers), output.failures.as_ref()]).flatten();
        if places.any(|uri| input.is_below(uri)) {
            authorize(endpoint.name(), record)?;
        }
    }
    Ok(())
}

fn bad_place(bad: BadPlace) -> RuntimeError {
    RuntimeError::validation(bad.to_string())
}

fn job(request: &Decoded, asked: &AsyncInvocation, input: Option<Place>, record: &Record) -> Result<Job, Failure> {
    let name = record.call.as_ref().map_or("", |call| &call.endpoint);
    let topology = record.worker.fleet.topology();
    let endpoint = call::endpoint(&topology, name, record)?;
    if endpoint.has_components() {
        return Err(RuntimeError::component_name_missing().into());
    }
    if let Some(place) = &input {
        check_readable(place, &topology, record)?;
    }
    let id = uuid(u128::from(record.worker.random()) << 64 | u128::from(record.worker.random()));
    let configured = endpoint.async_output();
    let default = format!("{DEFAULT_OUTPUT}/{}", endpoint.name());
    let answers = configured.map_or(&*default, |output| &output.answers);
    let failures = configured.and_then(|output| output.failures.as_deref()).unwrap_or(answers);
    let extension = asked.output_path_extension.as_deref().unwrap_or_default();
    let answer = match &asked.filename {
        Some(filename) => Place::below(answers, &[extension, filename]),
        None => Place::below(answers, &[extension, &format!("{id}.out")]),
    };
    let failure = Place::below(failures, &[extension, &format!("{id}-error.out")]);
    let headers = headers_of_operation(&request.head.headers, Operation::InvokeEndpointAsync);
    Ok(Job {
        endpoint: name.to_owned(),
        signed: record.signed.as_ref().map(|(key, region)| (key.to_string(), region.to_string())),
        holder: record.principal.as_ref().map(|holder| holder.name().as_str().to_owned()),
        headers: headers.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect(),
        input: input.map(|place| place.uri()),
        answer: answer.map_err(bad_place)?.uri(),
        failure: failure.map_err(bad_place)?.uri(),
        accepted: whole_seconds(SystemTime::now()),
        time_to_live: asked.time_to_live.as_secs(),
        timeout: asked.timeout.as_secs(),
        id,
    })
}

fn accepted(inference_id: &str, job: &Job) -> Response<Bytes> {
    let body = serde_json::json!({ "InferenceId": inference_id }).to_string();
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = StatusCode::ACCEPTED;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(OUTPUT_LOCATION, ascii(&job.answer));
    headers.insert(FAILURE_LOCATION, ascii(&job.failure));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_is_the_body_or_lies_at_a_place() {
        let asked = |location| AsyncInvocation {
            inference_id: None,
            input_location: location,
            output_path_extension: None,
            filename: None,
            time_to_live: std::time::Duration::ZERO,
            timeout: std::time::Duration::ZERO,
        };
        let s3 = |key: &str| Some(InputLocation::S3 { bucket: "b".into(), key: key.into() });
        assert_eq!(input(&asked(None), b"{}"), Ok(None));
        assert_eq!(input(&asked(s3("k")), b""), Ok(Some(Place::new("b", "k").unwrap())));
        assert!(input(&asked(None), b"").is_err());
        assert!(input(&asked(s3("k")), b"{}").is_err());
        assert!(input(&asked(s3("../k")), b"").is_err());
        assert!(input(&asked(Some(InputLocation::Https("https://x".into()))), b"").is_err());
        let longest = vec![0; LONGEST_INLINE as usize + 1];
        assert!(input(&asked(None), &longest).is_err() && input(&asked(None), &longest[1..]).is_ok());
    }
}
