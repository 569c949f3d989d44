//! The stage between forwarding and relaying, for calls of SageMaker's runtime only: what a container answered with an
//! error is no answer there, but a `ModelError` that tells of it.

use std::time::Duration;

use isotherm_wire::sagemaker::Fault;

use super::finish::Record;
use super::forward::{Forwarded, Held};
use crate::rescue::Failure;
use crate::upstream::BodyError;

/// How much of a container's error is told to the client, in bytes.
const LONGEST_ERROR: usize = 64 * 1024;

/// Lets an answer pass that is one.
pub(crate) async fn inspect(answer: Forwarded, record: &mut Record) -> Result<Forwarded, Failure> {
    let Some(call) = &record.call else { return Ok(answer) };
    if answer.held.status().is_success() {
        return Ok(answer);
    }
    let Forwarded { held, placement, .. } = answer;
    let status = held.status().as_u16();
    let text = tokio::time::timeout(patience(record), text(held)).await;
    // The instance is done with the request, or is cut off.
    drop(placement);
    let fault = match text {
        Ok(Ok(body)) => Fault::Answered { status, body: String::from_utf8_lossy(&body).into_owned() },
        Ok(Err(_)) | Err(_) => Fault::BodyBrokeOff { status },
    };
    let error = call.model_error(fault, record);
    record.answered = Some(status);
    Err(error.into())
}

/// How long the rest of an error may take to come.
fn patience(record: &Record) -> Duration {
    let left = record.deadline().map(|deadline| deadline.since(record.worker.now()));
    left.map_or(record.rules.timeouts.idle, |left| left.min(record.rules.timeouts.idle))
}

/// The body of an error, as far as it is told.
async fn text(held: Held) -> Result<Vec<u8>, BodyError> {
    let Held { pieces, body, .. } = held;
    let mut text: Vec<u8> = pieces.into_iter().flatten().collect();
    if let Some(mut body) = body {
        while text.len() < LONGEST_ERROR
            && let Some(piece) = std::future::poll_fn(|context| body.poll_next(context)).await.transpose()?
        {
            text.extend_from_slice(&piece);
        }
    }
    text.truncate(LONGEST_ERROR);
    Ok(text)
}
