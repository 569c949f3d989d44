//! The scheduler: continuous batching with one token budget per step, as a state machine.

use std::time::Duration;

use crate::profile::Profile;
use crate::request::{EngineRequest, Refused, RequestId};
use crate::statistics::Statistics;

/// What happened to a request in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The prompt is computed and the first token generated.
    FirstToken {
        /// The request.
        id: RequestId,
        /// Prompt tokens that came out of the prefix cache.
        cached_tokens: u32,
    },
    /// One more token.
    Token {
        /// The request.
        id: RequestId,
    },
    /// All tokens are generated; the request has left the engine. Comes after the event of its last token.
    Finished {
        /// The request.
        id: RequestId,
        /// Prompt tokens that came out of the prefix cache.
        cached_tokens: u32,
    },
    /// The request lost its blocks to others; it waits and will be computed again. No token is generated twice.
    Preempted {
        /// The request.
        id: RequestId,
    },
}

/// An engine: requests go in, steps are planned and completed, events come out.
#[derive(Debug)]
pub struct Engine {
    profile: Profile,
}

impl Engine {
    /// An idle engine with a cold cache.
    pub fn new(profile: Profile) -> Self {
        Self { profile }
    }

    /// What it pretends to be.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Takes a request. It joins the waiting queue after the profile's overhead and its tokenization.
    pub fn submit(&mut self, _now: Duration, _request: EngineRequest) -> Result<(), Refused> {
        todo!()
    }

    /// Gives a request up. During a step that computes it, its blocks are freed when the step ends, else at once. No
    /// event follows. False if the engine does not hold it (any more).
    pub fn abort(&mut self, _id: RequestId) -> bool {
        todo!()
    }

    /// When the next submitted request joins the waiting queue: when [`begin_step`](Self::begin_step) gave `None`, call
    /// it again then.
    pub fn next_arrival(&self) -> Option<Duration> {
        todo!()
    }

    /// Plans a step that begins now, and tells when it ends; `None` when there is nothing to compute. While a step is
    /// running it changes nothing and tells that step's end.
    pub fn begin_step(&mut self, _now: Duration) -> Option<Duration> {
        todo!()
    }

    /// Completes the running step (none: does nothing) and appends what happened. Call it when the step's end is
    /// reached.
    pub fn end_step(&mut self, _events: &mut Vec<Event>) {
        todo!()
    }

    /// Gauges and counters as of now.
    pub fn statistics(&self) -> Statistics {
        todo!()
    }
}
