//! The stage between forwarding and relaying, for calls of SageMaker's runtime only: what a container answered with an
//! error is no answer there, nor what it broke off where nothing is streamed, but a `ModelError` that tells of it.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, HeaderValue};
use isotherm_telemetry::UpstreamErrorKind;
use isotherm_wire::sagemaker::Fault;

use super::finish::Record;
use super::forward::{Forwarded, Held};
use crate::rescue::Failure;
use crate::upstream::BodyError;

/// How much of a container's error is told to the client, in bytes.
const LONGEST_ERROR: usize = 64 * 1024;

/// Lets an answer pass that is one; what is not to be streamed, once it is there as a whole.
pub(crate) async fn inspect(answer: Forwarded, record: &mut Record) -> Result<Forwarded, Failure> {
    let Some(call) = &record.call else { return Ok(answer) };
    match answer.held.status().is_success() {
        true if call.is_buffered() => whole(answer, record).await,
        true => Ok(answer),
        false => Err(told(answer, record).await),
    }
}

/// The error that the container answered with.
async fn told(answer: Forwarded, record: &Record) -> Failure {
    let Forwarded { held, placement, .. } = answer;
    let status = held.status().as_u16();
    let text = tokio::time::timeout(patience(record), text(held)).await;
    // The instance is done with the request, or is cut off.
    drop(placement);
    match text {
        Ok(Ok(body)) => {
            let body = String::from_utf8_lossy(&body).into_owned();
            model_error(Fault::Answered { status, body }, record)
        }
        Ok(Err(_)) | Err(_) => model_error(Fault::BodyBrokeOff { status }, record),
    }
}

/// How long the next bytes may take to come.
fn patience(record: &Record) -> Duration {
    let left = record.deadline().map(|deadline| deadline.since(record.worker.now()));
    left.map_or(record.rules.timeouts.idle, |left| left.min(record.rules.timeouts.idle))
}

/// The body of an error, as far as it is told.
async fn text(held: Box<Held>) -> Result<Vec<u8>, BodyError> {
    let Held { pieces, body, .. } = *held;
    let mut text: Vec<u8> = pieces.into_iter().flatten().collect();
    if let Some(mut body) = body {
        while text.len() < LONGEST_ERROR
            && let Some(piece) = poll_fn(|context| body.poll_next(context)).await.transpose()?
        {
            text.extend_from_slice(&piece);
        }
    }
    text.truncate(LONGEST_ERROR);
    Ok(text)
}

/// Waits for the rest of an answer: until all of it is there, it may still turn out to be none.
async fn whole(mut answer: Forwarded, record: &mut Record) -> Result<Forwarded, Failure> {
    let longest = record.rules.limits.invocation_body;
    let mut length: u64 = answer.held.pieces.iter().map(|piece| piece.len() as u64).sum();
    note_first_token(&mut answer, record);
    while let Some(body) = answer.held.body.as_ref().filter(|body| !body.has_ended()) {
        if length.saturating_add(body.remaining().unwrap_or(0)) > longest {
            // As AWS has it for a response over its limit: that is the container's fault, and its body can't be told.
            return Err(broken_off(None, &answer, record));
        }
        match next(&mut answer.held, record).await {
            Ok(Some(piece)) => {
                length += piece.len() as u64;
                answer.held.watch.scan(&piece);
                answer.held.pieces.push_back(piece);
                answer.placement.instance.note_byte(record.worker.now());
                note_first_token(&mut answer, record);
            }
            Ok(None) => break,
            Err(UpstreamErrorKind::Truncated) if answer.held.watch.is_complete() => answer.held.body = None,
            Err(why) => return Err(broken_off(Some(why), &answer, record)),
        }
    }
    if length > longest {
        return Err(broken_off(None, &answer, record));
    }
    if answer.held.status() != StatusCode::NO_CONTENT {
        answer.held.headers.entry(CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
    }
    Ok(answer)
}

/// The next piece of the body; `None` at its end.
async fn next(held: &mut Held, record: &Record) -> Result<Option<Bytes>, UpstreamErrorKind> {
    let Some(body) = &mut held.body else { return Ok(None) };
    let piece = tokio::time::timeout(patience(record), poll_fn(|context| body.poll_next(context))).await;
    match piece {
        Ok(piece) => piece.transpose().map_err(|_| UpstreamErrorKind::Truncated),
        Err(_) if record.deadline().is_some_and(|deadline| deadline <= record.worker.now()) => {
            Err(UpstreamErrorKind::TotalTimeout)
        }
        Err(_) => Err(UpstreamErrorKind::IdleTimeout),
    }
}

/// Generated tokens are noted when the container sends them, for all that its client has to wait.
fn note_first_token(answer: &mut Forwarded, record: &mut Record) {
    if !record.has_first_token() && answer.held.watch.first_token_seen() {
        record.first_token(record.worker.now());
        answer.placement.slot.first_token();
    }
}

fn model_error(fault: Fault, record: &Record) -> Failure {
    match &record.call {
        Some(call) => call.model_error(fault, record).into(),
        None => Failure::Broken,
    }
}

/// What is told of an answer that did not come whole, or that was too long where nothing went wrong on the way.
fn broken_off(why: Option<UpstreamErrorKind>, answer: &Forwarded, record: &Record) -> Failure {
    if let Some(why) = why {
        answer.placement.instance.metrics().upstream_error(why);
    }
    let timed_out = matches!(why, Some(UpstreamErrorKind::TotalTimeout | UpstreamErrorKind::IdleTimeout));
    let status = answer.held.status().as_u16();
    model_error(if timed_out { Fault::TimedOut } else { Fault::BodyBrokeOff { status } }, record)
}
