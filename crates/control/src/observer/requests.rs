//! The last requests, a bounded number of them, newest first.

use std::collections::VecDeque;
use std::time::SystemTime;

use isotherm_telemetry::WatchedRequest;
use serde::Serialize;

/// How many are kept.
const KEPT: usize = 200;

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
}

impl Requests {
    pub(super) fn take_in(&mut self, requests: Vec<WatchedRequest>) {
        self.newest_last.extend(requests);
        let beyond = self.newest_last.len().saturating_sub(KEPT);
        self.newest_last.drain(..beyond);
    }

    /// At most so many, newest first.
    pub(crate) fn newest(&self, at_most: usize) -> Vec<ShownRequest> {
        self.newest_last.iter().rev().take(at_most).map(ShownRequest::of).collect()
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
        }
    }
}

/// A moment in Unix time, with milliseconds.
pub(crate) fn unix_seconds(time: SystemTime) -> f64 {
    let milliseconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    milliseconds as f64 / 1_000.0
}

fn bounded(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}
