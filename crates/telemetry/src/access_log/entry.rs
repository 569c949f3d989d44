//! What one line of the access log tells: where a request went, why, and how it ended. No prompts, no keys of clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use isotherm_core::{Arm, Decision, HashSeed, Reason, SpillCause, StrategyName};
use jiff::Timestamp;
use serde::Serialize;

use crate::{Outcome, Published, TracedRequest};

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
    /// Its prompt as hashes, where they are to be told, and the seed that they are told under.
    pub prompt: Option<(Arc<TracedRequest>, HashSeed)>,
}

impl AccessLogEntry {
    /// What is known of a traced request that has ended, in the form of the access log. `None` while it has not.
    pub fn of_traced(traced: &Arc<TracedRequest>, seed: HashSeed) -> Option<AccessLogEntry> {
        let ended = traced.ended()?;
        Some(AccessLogEntry {
            time: traced.time,
            request_id: Arc::clone(&traced.request_id),
            client: None,
            principal: None,
            method: "POST".into(),
            path: "".into(),
            api: None,
            endpoint: Some(Arc::clone(&traced.endpoint)),
            variant: Some(Arc::clone(&traced.variant)),
            model: traced.model.clone(),
            status: ended.status,
            outcome: ended.outcome,
            decision: ended.decision.clone(),
            retries: 0,
            queued: ended.queued,
            time_to_first_token: ended.time_to_first_token,
            duration: ended.at.since(traced.arrived),
            prompt_tokens: ended.prompt_tokens,
            cached_tokens: ended.cached_tokens,
            output_tokens: ended.output_tokens,
            bytes_in: 0,
            bytes_out: 0,
            prompt: Some((Arc::clone(traced), seed)),
        })
    }

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
    pub fn write_line(&self, buffer: &mut Vec<u8>) {
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
    #[serde(flatten)]
    prompt: Option<PromptFields<'e>>,
}

/// The fields of a prompt.
#[derive(Serialize)]
struct PromptFields<'e> {
    /// Keyed hashes of the prompt up to the ends of some of its blocks.
    blocks: Vec<String>,
    /// Where these end, in bytes.
    ends: &'e [u32],
    /// From which block to which the model itself has spoken, the last one not included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<(usize, usize)>,
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
            prompt: entry.prompt.as_ref().map(|(traced, seed)| PromptFields::of(traced, *seed)),
        }
    }
}

impl<'e> PromptFields<'e> {
    fn of(traced: &'e TracedRequest, seed: HashSeed) -> PromptFields<'e> {
        let (published, trail) = (Published::new(seed), &traced.trail);
        let blocks = trail.blocks.iter().map(|block| format!("{:016x}", published.block(trail, *block)));
        PromptFields { blocks: blocks.collect(), ends: &trail.ends, answers: trail.answers() }
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
