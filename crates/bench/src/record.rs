//! Collects the requests of a timed run as observations.

use std::ops::Range;
use std::time::Duration;

use isotherm_report::{Failure, FleetPart, Observation, Run};

use crate::replay::{Ended, Replay, Timetable};
use crate::validity::Lag;

/// The observations so far.
pub(crate) struct Recorder {
    window: Range<u64>,
    observations: Vec<Observation>,
    instances: Vec<String>,
    late: Vec<Duration>,
    requests: u64,
    errors: u64,
    first_failure: Option<Failure>,
}

impl Recorder {
    /// `instances` are those that are known to be there; others are added as answers name them.
    pub(crate) fn new(timetable: Timetable, instances: &[String]) -> Recorder {
        Recorder {
            window: nanoseconds(timetable.warm_up)..nanoseconds(timetable.duration),
            observations: Vec::new(),
            instances: instances.to_vec(),
            late: Vec::new(),
            requests: 0,
            errors: 0,
            first_failure: None,
        }
    }

    /// The measured time.
    pub(crate) fn window(&self) -> Range<u64> {
        self.window.clone()
    }

    pub(crate) fn add(&mut self, ended: Ended) {
        let Ended { planned, exchange, late } = ended;
        let small = |tokens: u64| u32::try_from(tokens).unwrap_or(u32::MAX);
        let send = nanoseconds(exchange.send);
        let failed = exchange.failure.is_some();
        let instance = exchange.instance.as_deref().map(|name| self.number_of(name));
        self.late.push(late);
        self.observations.push(Observation {
            send,
            ttft: exchange.first_token.map(|first| nanoseconds(first.saturating_sub(exchange.send))),
            end: nanoseconds(exchange.end),
            prompt_tokens: small(exchange.usage.prompt_tokens.unwrap_or_else(|| planned.prompt_tokens())),
            cached_tokens: exchange.usage.cached_tokens().map(small),
            output_tokens: exchange.usage.completion_tokens.map_or(planned.output_tokens, small),
            instance,
            spilled: exchange.reason.as_deref() == Some("spill"),
            failed,
        });
        if self.window.contains(&send) {
            self.requests += 1;
            self.errors += u64::from(failed);
        }
        if self.first_failure.is_none() {
            self.first_failure = exchange.failure;
        }
    }

    /// The whole run, once the last request has ended.
    pub(crate) fn into_replay(mut self, parts: Vec<FleetPart>) -> Replay {
        self.observations.sort_by_key(|observation| observation.send);
        let Recorder { window, observations, instances, late, requests, errors, first_failure } = self;
        let run = Run { window, observations, parts, instances };
        Replay { run, client_lag: Lag::of(late), requests, errors, first_failure }
    }

    fn number_of(&mut self, name: &str) -> u32 {
        let known = self.instances.iter().position(|instance| instance == name);
        let number = known.unwrap_or_else(|| {
            self.instances.push(name.to_owned());
            self.instances.len() - 1
        });
        number as u32
    }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
