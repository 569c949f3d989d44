//! Stateful sessions on `/invocations`, as AWS's containers for vLLM keep them (`model-hosting-container-standards`).
//!
//! `{"requestType": "NEW_SESSION"}` begins one and `{"requestType": "CLOSE"}` ends it; between them, requests say by a
//! header that they belong to it. Beyond those containers, any request whose header says `NEW_SESSION` begins one.

use std::borrow::Cow;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::api::invocations;
use crate::call::Call;
use crate::emulator::Emulator;
use crate::failure::Failure;
use crate::reply::{self, Reply};

const SESSION_ID: &str = "x-amzn-sagemaker-session-id";
const NEW_SESSION_ID: HeaderName = HeaderName::from_static("x-amzn-sagemaker-new-session-id");
const CLOSED_SESSION_ID: HeaderName = HeaderName::from_static("x-amzn-sagemaker-closed-session-id");
/// What a client says in place of an id that it does not have yet.
const NEW: &str = "NEW_SESSION";

/// Begins and ends sessions, and answers whatever else is asked.
pub(crate) async fn answer(call: &Call<'_>, headers: &HeaderMap) -> Result<Reply, Failure> {
    let session = headers.get(SESSION_ID).and_then(|value| value.to_str().ok());
    let wish: Option<Cow<'_, str>> = call.fields.optional("requestType")?;
    match (wish.as_deref(), session) {
        (Some(NEW), _) => Ok(begin(call.emulator, |id| reply::text(format!("Session {id} created")))),
        (Some("CLOSE"), Some(id)) => close(call.emulator, id),
        (Some("CLOSE"), None) => Err(Failure::Malformed(format!("Bad request: {SESSION_ID} header is required"))),
        (Some(other), _) => {
            Err(Failure::Malformed(format!("requestType is {other:?}, but must be NEW_SESSION or CLOSE")))
        }
        (None, Some(NEW)) => {
            let answer = invocations::answer(call).await?;
            Ok(begin(call.emulator, |_| answer))
        }
        (None, Some(id)) => {
            check(call.emulator, id)?;
            invocations::answer(call).await
        }
        (None, None) => invocations::answer(call).await,
    }
}

fn begin(emulator: &Emulator, answer: impl FnOnce(&str) -> Reply) -> Reply {
    let id = emulator.fresh_id("session-");
    let end = emulator.sessions().borrow_mut().begin(&id, SystemTime::now());
    let mut reply = answer(&id);
    // Whole seconds, as the header has it: the session ends no earlier than it says.
    let end = Timestamp::try_from(end).unwrap_or(Timestamp::MAX).to_zoned(TimeZone::UTC);
    let value = format!("{id}; Expires={}", end.strftime("%Y-%m-%dT%H:%M:%SZ"));
    if let Ok(value) = HeaderValue::from_str(&value) {
        reply.headers_mut().insert(NEW_SESSION_ID, value);
    }
    reply
}

fn close(emulator: &Emulator, id: &str) -> Result<Reply, Failure> {
    check(emulator, id)?;
    emulator.sessions().borrow_mut().close(id);
    let mut reply = reply::text(format!("Session {id} closed"));
    if let Ok(value) = HeaderValue::from_str(id) {
        reply.headers_mut().insert(CLOSED_SESSION_ID, value);
    }
    Ok(reply)
}

fn check(emulator: &Emulator, id: &str) -> Result<(), Failure> {
    if emulator.sessions().borrow().has(id, SystemTime::now()) {
        Ok(())
    } else {
        Err(Failure::Malformed(format!("Bad request: session not found: {id}")))
    }
}
