//! What the HTTP side counts for `/metrics`, beside the engine's own statistics.

use std::time::Duration;

use crate::answer::Finish;
use crate::histogram::Histogram;

/// Bounds of `vllm:time_to_first_token_seconds` in vLLM 0.32.
const FIRST_TOKEN_BOUNDS: [f64; 22] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
];

/// Bounds of `vllm:e2e_request_latency_seconds` in vLLM 0.32.
const LATENCY_BOUNDS: [f64; 21] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
];

/// Counters and histograms of requests. Times are wall-clock times: what a client of this emulator sees.
#[derive(Debug)]
pub(crate) struct Meters {
    pub(crate) time_to_first_token: Histogram,
    pub(crate) latency: Histogram,
    pub(crate) stopped: u64,
    pub(crate) reached_limit: u64,
    pub(crate) aborted: u64,
}

impl Meters {
    pub(crate) fn new() -> Self {
        Self {
            time_to_first_token: Histogram::new(&FIRST_TOKEN_BOUNDS),
            latency: Histogram::new(&LATENCY_BOUNDS),
            stopped: 0,
            reached_limit: 0,
            aborted: 0,
        }
    }

    pub(crate) fn first_token(&mut self, after: Duration) {
        self.time_to_first_token.observe(after.as_secs_f64());
    }

    pub(crate) fn finished(&mut self, finish: Finish, after: Duration) {
        self.latency.observe(after.as_secs_f64());
        match finish {
            Finish::Stop | Finish::ToolCall => self.stopped += 1,
            Finish::Length => self.reached_limit += 1,
        }
    }

    pub(crate) fn aborted(&mut self) {
        self.aborted += 1;
    }
}
