//! What one line of the access log tells: where a request went, why, and how it ended. No prompts, no keys of clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use isotherm_core::{Arm, Decision, Reason, SpillCause, StrategyName};
use jiff::Timestamp;
use serde::Serialize;

use crate::Outcome;

/// The longest text of a client's choosing in a line, in characters; a longer one is cut.
const LONGEST_TEXT: usize = 512;

/// A finished request.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessLogEntry {
    /// When the request arrived.
    pub time: SystemTime,
    /// The request's id, the client's own or ours.
    pub request_id: Arc<str>,
    /// Who called, where that may be told.
    pub client: Option<SocketAddr>,
    /// The name of the key by which the client was let in.
    pub principal: Option<Arc<str>>,
    /// The HTTP method.
    pub method: Arc<str>,
    /// The path; a query is cut off, for it may hold anything.
    pub path: Arc<str>,
    /// The API, where the path is one.
    pub api: Option<&'static str>,
    /// The endpoint, once it was known.
    pub endpoint: Option<Arc<str>>,
    /// The variant, once it was known.
    pub variant: Option<Arc<str>>,
    /// The model that the request named.
    pub model: Option<Arc<str>>,
    /// The status of the response; 499 when the client left before it.
    pub status: u16,
    /// How the request ended.
    pub outcome: Outcome,
    /// The last decision, where there was one.
    pub decision: Option<Decision>,
    /// How often the request was tried again.
    pub retries: u32,
    /// How long it waited for an instance below its `max_in_flight`, if it did.
    pub queued: Option<Duration>,
    /// From its arrival to the first generated token, where one was seen.
    pub time_to_first_token: Option<Duration>,
    /// From its arrival to its end.
    pub duration: Duration,
    /// Tokens of the prompt, as the engine counts them.
    pub prompt_tokens: Option<u64>,
    /// How many of them were cached; `None` where the engine does not say.
    pub cached_tokens: Option<u64>,
    /// Generated tokens, as the engine counts them.
    pub output_tokens: Option<u64>,
    /// Bytes of the request's body.
    pub bytes_in: u64,
    /// Bytes of the response's body.
    pub bytes_out: u64,
}

impl AccessLogEntry {
    /// The entry without what would not be written anyway, so that waiting lines are small whatever clients send.
    pub(super) fn bounded(mut self) -> AccessLogEntry {
        for text in [&mut self.request_id, &mut self.method, &mut self.path] {
            bound(text);
        }
        for text in [&mut self.endpoint, &mut self.model].into_iter().flatten() {
            bound(text);
        }
        self
    }

    /// Appends the entry as one line of JSON.
    pub(super) fn write_line(&self, buffer: &mut Vec<u8>) {
        let start = buffer.len();
        if serde_json::to_writer(&mut *buffer, &Line::from(self)).is_ok() {
            buffer.push(b'\n');
        } else {
            buffer.truncate(start);
        }
    }
}

/// The fields as they are written, in their order; what is not known is left out.
#[derive(Serialize)]
struct Line<'e> {
    time: String,
    request_id: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'e str>,
    method: &'e str,
    path: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'e str>,
    status: u16,
    outcome: Outcome,
    #[serde(flatten)]
    decision: Option<DecisionFields<'e>>,
    retries: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    queued_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttft_ms: Option<f64>,
    duration_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    bytes_in: u64,
    bytes_out: u64,
}

/// The fields of a decision.
#[derive(Serialize)]
struct DecisionFields<'e> {
    strategy: StrategyName,
    arm: Arm,
    instance: &'e str,
    reason: Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<SpillCause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    home: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<u32>,
    in_flight: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    home_in_flight: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_cached_tokens: Option<u64>,
}

impl<'e> From<&'e AccessLogEntry> for Line<'e> {
    fn from(entry: &'e AccessLogEntry) -> Line<'e> {
        let path = entry.path.split(['?', '#']).next().unwrap_or_default();
        Line {
            time: rfc3339(entry.time),
            request_id: &entry.request_id,
            client: entry.client,
            principal: entry.principal.as_deref(),
            method: &entry.method,
            path,
            api: entry.api,
            endpoint: entry.endpoint.as_deref(),
            variant: entry.variant.as_deref(),
            model: entry.model.as_deref(),
            status: entry.status,
            outcome: entry.outcome,
            decision: entry.decision.as_ref().map(DecisionFields::from),
            retries: entry.retries,
            queued_ms: entry.queued.map(milliseconds),
            ttft_ms: entry.time_to_first_token.map(milliseconds),
            duration_ms: milliseconds(entry.duration),
            prompt_tokens: entry.prompt_tokens,
            cached_tokens: entry.cached_tokens,
            output_tokens: entry.output_tokens,
            bytes_in: entry.bytes_in,
            bytes_out: entry.bytes_out,
        }
    }
}

impl<'e> From<&'e Decision> for DecisionFields<'e> {
    fn from(decision: &'e Decision) -> DecisionFields<'e> {
        DecisionFields {
            strategy: decision.strategy,
            arm: decision.arm,
            instance: decision.chosen.as_str(),
            reason: decision.reason,
            cause: decision.cause,
            home: decision.home.as_ref().map(|home| home.as_str()),
            key: decision.key.map(|key| key.to_string()),
            place: decision.place,
            in_flight: decision.in_flight,
            home_in_flight: decision.home_in_flight,
            expected_cached_tokens: decision.expected_cached_tokens,
        }
    }
}

/// UTC with milliseconds.
fn rfc3339(time: SystemTime) -> String {
    Timestamp::try_from(time).map(|time| format!("{time:.3}")).unwrap_or_default()
}

/// Milliseconds with microseconds behind the point.
fn milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1_000.0
}

fn bound(text: &mut Arc<str>) {
    if let Some((end, _)) = text.char_indices().nth(LONGEST_TEXT) {
        *text = text[..end].into();
    }
}
