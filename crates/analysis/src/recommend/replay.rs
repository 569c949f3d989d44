//! The scenario that replays a log.

use std::time::Duration;

use isotherm_core::PrefixAware;
use isotherm_sim::{Fleet, Group, Scenario, Slo};

use super::{Replay, Wanted, strategies};
use crate::Analysis;
use crate::kept::ASSUMED_OUTPUT_TOKENS;

/// Fewer requests measure nothing.
const FEWEST_REQUESTS: usize = 20;

/// Together, the runs with different seeds have about so many requests.
const REQUESTS_OVER_SEEDS: usize = 20_000;
const SEEDS: (usize, usize) = (2, 8);

/// This part of the time only warms the caches.
const WARM_UP: f64 = 0.1;

/// A closed loop runs at least and at most so long.
const CLOSED_LOOP_SECONDS: (f64, f64) = (60.0, 3_600.0);

/// What an answer's token takes on a busy engine, and what comes before the first, in seconds: only for how long a closed
/// loop takes to send the log about once.
const TOKEN_SECONDS: f64 = 0.02;
const FIRST_SECONDS: f64 = 0.3;

impl Analysis {
    /// The log's requests on the fleet that is asked about; `None` where they are too few.
    pub(super) fn scenario(&self, wanted: &Wanted) -> Option<(Scenario, Replay)> {
        let users = wanted.users.max(1);
        let workload = self.kept.workload(self.token_factor, users, wanted.think);
        let count = workload.requests.len();
        if count < FEWEST_REQUESTS {
            return None;
        }
        let recorded_times = workload.is_timed();
        let duration = match self.kept.span().filter(|_| recorded_times) {
            // The last request is sent at the end of the span and must still be sent.
            Some(span) => span + Duration::from_millis(1),
            None => {
                let outputs: u64 = workload.requests.iter().map(|one| u64::from(one.request.output_tokens)).sum();
                let answer = FIRST_SECONDS + TOKEN_SECONDS * outputs as f64 / count as f64;
                let think: f64 = workload.requests.iter().map(|one| one.request.think.as_secs_f64()).sum();
                let pause = wanted.think.as_secs_f64().max(think / count as f64);
                let seconds = count as f64 / f64::from(users) * (answer + pause);
                Duration::from_secs_f64(seconds.clamp(CLOSED_LOOP_SECONDS.0, CLOSED_LOOP_SECONDS.1))
            }
        };
        let seeds = (REQUESTS_OVER_SEEDS / count).clamp(SEEDS.0, SEEDS.1) as u32;
        let seeds = wanted.seeds.unwrap_or(seeds).max(1);
        let warm_up = duration.mul_f64(WARM_UP);
        let scenario = Scenario {
            name: "log".to_owned(),
            title: "the log's own requests".to_owned(),
            fitted: Vec::new(),
            predicted: Vec::new(),
            fleet: Fleet {
                groups: vec![Group { instances: wanted.instances.max(1), profile: wanted.profile.clone() }],
            },
            changes: Vec::new(),
            workload: workload.into(),
            arrivals: None,
            routers: 1,
            prefix_aware: PrefixAware::default(),
            strategies: strategies(),
            duration,
            warm_up,
            seeds,
            first_seed: 1,
            slo: Slo::default(),
            price_per_instance_hour: None,
        };
        let replay = Replay {
            requests: count,
            of: count as u64 + self.kept.left_out(),
            seconds: duration.as_secs_f64(),
            warm_up_seconds: warm_up.as_secs_f64(),
            recorded_times,
            users: if recorded_times { 0 } else { users },
            instances: wanted.instances.max(1),
            profile: wanted.profile.name.clone(),
            seeds,
            assumed_output_tokens: self.kept.some_outputs_unknown().then_some(ASSUMED_OUTPUT_TOKENS),
        };
        Some((scenario, replay))
    }
}
