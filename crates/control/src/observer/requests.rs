//! The last requests, a bounded number of them, newest first.

use std::collections::VecDeque;
use std::time::SystemTime;

use isotherm_core::Time;
use isotherm_fleet::Topology;
use isotherm_telemetry::WatchedRequest;
use serde::Serialize;

/// How many are kept.
const KEPT: usize = 200;

/// How many instances are told of a key's order.
const ALTERNATIVES: usize = 4;

/// The longest text of a client's choosing, in characters.
const LONGEST_TEXT: usize = 100;

/// The last requests.
#[derive(Default)]
pub(crate) struct Requests {
    newest_last: VecDeque<WatchedRequest>,
}

/// One request, with its decision, as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct ShownRequest {
    /// When it ended, in Unix time.
    time: f64,
    request_id: String,
    endpoint: String,
    variant: String,
    model: Option<String>,
    status: u16,
    outcome: &'static str,
    strategy: &'static str,
    instance: String,
    reason: &'static str,
    cause: Option<&'static str>,
    home: Option<String>,
    key: Option<String>,
    /// The chosen instance's place in the key's order; 0 is home.
    place: Option<u32>,
    eligible: u32,
    in_flight: u32,
    home_in_flight: Option<u32>,
    expected_cached_tokens: Option<u64>,
    ttft_ms: Option<f64>,
    duration_ms: f64,
    prompt_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    output_tokens: Option<u64>,
    /// The first instances in the key's order, as they stand now.
    order: Vec<Alternative>,
}

/// An instance that a request could have gone to.
#[derive(Debug, Serialize)]
struct Alternative {
    instance: String,
    in_flight: u32,
    eligible: bool,
}

impl Requests {
    pub(super) fn take_in(&mut self, requests: Vec<WatchedRequest>) {
        self.newest_last.extend(requests);
        let beyond = self.newest_last.len().saturating_sub(KEPT);
        self.newest_last.drain(..beyond);
    }

    /// At most so many, newest first.
    pub(crate) fn newest(&self, at_most: usize, topology: &Topology, now: Time) -> Vec<ShownRequest> {
        let shown = |request| ShownRequest { order: order(request, topology, now), ..ShownRequest::of(request) };
        self.newest_last.iter().rev().take(at_most).map(shown).collect()
    }
}

impl ShownRequest {
    fn of(request: &WatchedRequest) -> ShownRequest {
        let decision = &request.decision;
        let milliseconds = |duration: std::time::Duration| duration.as_micros() as f64 / 1_000.0;
        ShownRequest {
            time: unix_seconds(request.time),
            request_id: bounded(&request.request_id),
            endpoint: request.endpoint.to_string(),
            variant: request.variant.to_string(),
            model: request.model.as_deref().map(bounded),
            status: request.status,
            outcome: request.outcome.as_str(),
            strategy: decision.strategy.as_str(),
            instance: decision.chosen.to_string(),
            reason: decision.reason.as_str(),
            cause: decision.cause.map(isotherm_core::SpillCause::as_str),
            home: decision.home.as_ref().map(ToString::to_string),
            key: decision.key.map(|key| key.to_string()),
            place: decision.place,
            eligible: decision.eligible,
            in_flight: decision.in_flight,
            home_in_flight: decision.home_in_flight,
            expected_cached_tokens: decision.expected_cached_tokens,
            ttft_ms: request.time_to_first_token.map(milliseconds),
            duration_ms: milliseconds(request.duration),
            prompt_tokens: request.prompt_tokens,
            cached_tokens: request.cached_tokens,
            output_tokens: request.output_tokens,
            order: Vec::new(),
        }
    }
}

/// The order of a request's key, where its strategy has one.
fn order(request: &WatchedRequest, topology: &Topology, now: Time) -> Vec<Alternative> {
    let Some(key) = request.decision.key else { return Vec::new() };
    let variant = topology.endpoint(&request.endpoint).and_then(|endpoint| endpoint.variant(&request.variant));
    let order = variant.map(|variant| variant.order(key, None, now)).unwrap_or_default();
    let alternative = |one: &isotherm_fleet::OrderedInstance| Alternative {
        instance: one.now.instance.id().to_string(),
        in_flight: one.now.in_flight,
        eligible: one.eligible,
    };
    order.iter().take(ALTERNATIVES).map(alternative).collect()
}

/// A moment in Unix time, with milliseconds.
pub(crate) fn unix_seconds(time: SystemTime) -> f64 {
    let milliseconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    milliseconds as f64 / 1_000.0
}

fn bounded(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}
