//! The last requests that an emulator saw, so that tests can prove what a router sent and when it let go.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use http::request::Parts;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use crate::usage::Usage;

/// Values of these headers are kept; of all others only the name, for they may be credentials.
const SHOWN_HEADERS: [&str; 16] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "traceparent",
    "transfer-encoding",
    "user-agent",
    "x-amzn-sagemaker-adapter-identifier",
    "x-amzn-sagemaker-session-id",
    "x-forwarded-for",
    "x-request-id",
    "x-session-id",
];

/// One request as it arrived and what became of it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ObservedRequest {
    /// Counts from 1 over the emulator's life.
    number: u64,
    method: String,
    path: String,
    http_version: String,
    /// Names in the order received, with the value where it is one of the shown ones.
    headers: Vec<(String, Option<String>)>,
    body_bytes: usize,
    /// XXH3-128 of the body, hexadecimal; absent until the body was read whole.
    body_xxh3_128: Option<String>,
    /// Milliseconds after the emulator's start, wall clock.
    arrived_ms: f64,
    ended_ms: Option<f64>,
    status: Option<u16>,
    prompt_tokens: u32,
    cached_tokens: u32,
    output_tokens: u32,
    /// Neither answered in full nor left yet.
    in_flight: bool,
    /// The client left, or a fault cut it off, before the answer was complete.
    aborted: bool,
}

/// A bounded ring; the oldest entry goes first.
#[derive(Debug)]
pub(crate) struct ObservedRequests {
    started: Instant,
    capacity: usize,
    seen: u64,
    in_flight: usize,
    ring: VecDeque<ObservedRequest>,
}

/// What `GET /emulator/requests` returns.
#[derive(Debug, Serialize)]
pub(crate) struct ObservedReport<'a> {
    seen: u64,
    in_flight: usize,
    requests: &'a VecDeque<ObservedRequest>,
}

impl ObservedRequests {
    pub(crate) fn new(started: Instant, capacity: usize) -> Self {
        Self { started, capacity, seen: 0, in_flight: 0, ring: VecDeque::new() }
    }

    pub(crate) fn report(&self) -> ObservedReport<'_> {
        ObservedReport { seen: self.seen, in_flight: self.in_flight, requests: &self.ring }
    }

    pub(crate) fn clear(&mut self) {
        self.ring.clear();
    }

    /// Requests not yet answered in full nor left, whether or not the ring still holds them.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn push(&mut self, parts: &Parts) -> u64 {
        self.seen += 1;
        self.in_flight += 1;
        if self.ring.len() == self.capacity {
            self.ring.pop_front();
        }
        self.ring.push_back(ObservedRequest {
            number: self.seen,
            method: parts.method.to_string(),
            path: parts.uri.path_and_query().map_or_else(String::new, ToString::to_string),
            http_version: format!("{:?}", parts.version),
            headers: parts.headers.iter().map(shown_header).collect(),
            body_bytes: 0,
            body_xxh3_128: None,
            arrived_ms: self.since_start_ms(),
            ended_ms: None,
            status: None,
            prompt_tokens: 0,
            cached_tokens: 0,
            output_tokens: 0,
            in_flight: true,
            aborted: false,
        });
        self.seen
    }

    fn since_start_ms(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * 1e3
    }

    /// The entry, unless the ring has dropped it already.
    fn entry(&mut self, number: u64) -> Option<&mut ObservedRequest> {
        let newest = self.ring.back()?.number;
        let from_back = usize::try_from(newest.checked_sub(number)?).ok()?;
        let index = self.ring.len().checked_sub(from_back + 1)?;
        self.ring.get_mut(index)
    }
}

fn shown_header((name, value): (&http::HeaderName, &http::HeaderValue)) -> (String, Option<String>) {
    let name = name.as_str();
    let shown = SHOWN_HEADERS.contains(&name) || name.starts_with("x-isotherm-");
    (name.to_owned(), shown.then(|| String::from_utf8_lossy(value.as_bytes()).into_owned()))
}

/// Follows one request to its end; dropped before [`Observation::complete`], the request counts as aborted.
#[derive(Debug)]
pub(crate) struct Observation {
    requests: Rc<RefCell<ObservedRequests>>,
    number: u64,
    completed: bool,
}

impl Observation {
    pub(crate) fn begin(requests: &Rc<RefCell<ObservedRequests>>, parts: &Parts) -> Self {
        let number = requests.borrow_mut().push(parts);
        Self { requests: Rc::clone(requests), number, completed: false }
    }

    pub(crate) fn body(&self, body: &[u8]) {
        self.update(|entry| {
            entry.body_bytes = body.len();
            entry.body_xxh3_128 = Some(format!("{:032x}", xxh3_128(body)));
        });
    }

    pub(crate) fn status(&self, status: http::StatusCode) {
        self.update(|entry| entry.status = Some(status.as_u16()));
    }

    pub(crate) fn tokens(&self, usage: Usage) {
        self.update(|entry| {
            entry.prompt_tokens = usage.prompt;
            entry.cached_tokens = usage.cached;
            entry.output_tokens = usage.output;
        });
    }

    /// The whole answer was handed to the connection.
    pub(crate) fn complete(&mut self) {
        self.completed = true;
    }

    fn update(&self, change: impl FnOnce(&mut ObservedRequest)) {
        if let Some(entry) = self.requests.borrow_mut().entry(self.number) {
            change(entry);
        }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        let mut requests = self.requests.borrow_mut();
        requests.in_flight -= 1;
        let now = requests.since_start_ms();
        if let Some(entry) = requests.entry(self.number) {
            entry.in_flight = false;
            entry.aborted = !self.completed;
            entry.ended_ms = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> Parts {
        http::Request::post(path)
            .header("authorization", "Bearer secret")
            .header("x-request-id", "r1")
            .body(())
            .unwrap()
            .into_parts()
            .0
    }

    #[test]
    fn shows_harmless_values_and_hides_credentials() {
        let requests = Rc::new(RefCell::new(ObservedRequests::new(Instant::now(), 4)));
        let _observation = Observation::begin(&requests, &parts("/v1/models"));
        let json = serde_json::to_value(requests.borrow().report()).unwrap();
        assert_eq!(json["requests"][0]["headers"][0], serde_json::json!(["authorization", null]));
        assert_eq!(json["requests"][0]["headers"][1], serde_json::json!(["x-request-id", "r1"]));
    }

    #[test]
    fn an_observation_dropped_early_is_an_abort() {
        let requests = Rc::new(RefCell::new(ObservedRequests::new(Instant::now(), 4)));
        let mut whole = Observation::begin(&requests, &parts("/a"));
        let left = Observation::begin(&requests, &parts("/b"));
        assert_eq!(requests.borrow().in_flight(), 2);
        whole.complete();
        drop((whole, left));
        let requests = requests.borrow();
        assert_eq!(requests.in_flight(), 0);
        assert_eq!(requests.ring.iter().map(|entry| entry.aborted).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn the_ring_is_bounded_and_late_updates_of_dropped_entries_are_lost() {
        let requests = Rc::new(RefCell::new(ObservedRequests::new(Instant::now(), 2)));
        let first = Observation::begin(&requests, &parts("/1"));
        let _second = Observation::begin(&requests, &parts("/2"));
        let third = Observation::begin(&requests, &parts("/3"));
        first.body(b"x");
        third.body(b"abc");
        let requests = requests.borrow();
        let bodies: Vec<_> = requests.ring.iter().map(|entry| (entry.number, entry.body_bytes)).collect();
        assert_eq!(bodies, [(2, 0), (3, 3)]);
    }
}
