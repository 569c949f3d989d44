//! One simulated instance: an engine while it lives, and what it did.

use std::sync::Arc;
use std::time::Duration;

use isotherm_core::InstanceId;
use isotherm_engine_model::{Engine, EngineRequest, Event as EngineEvent, Profile, Refused};

/// An instance, from the moment it is paid for to the moment it is not.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) id: InstanceId,
    pub(crate) profile: Arc<Profile>,
    engine: Option<Engine>,
    step_end: Option<u64>,
    /// Requests that it has and that have not come back to the router.
    pub(crate) in_flight: u32,
    pub(crate) leaving: bool,
    paid_since: Option<u64>,
    totals: Totals,
    of_earlier_lives: Counters,
}

/// What an instance did since the simulation began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) evicted_blocks: u64,
    pub(crate) instance_time: u64,
    pub(crate) busy_time: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    evicted_blocks: u64,
    busy_time: u64,
}

/// What an instance wants when it was asked to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// To be asked again then.
    At(u64),
    /// To be left alone until the next request comes.
    Nothing,
}

impl Server {
    /// An instance that is being started: it is paid for, and serves once it is [`ready`](Self::start).
    pub(crate) fn new(id: InstanceId, profile: Arc<Profile>, now: u64) -> Server {
        Server {
            id,
            profile,
            engine: None,
            step_end: None,
            in_flight: 0,
            leaving: false,
            paid_since: Some(now),
            totals: Totals::default(),
            of_earlier_lives: Counters::default(),
        }
    }

    /// Begins a life with a cold cache.
    pub(crate) fn start(&mut self) {
        self.engine = Some(Engine::new(Profile::clone(&self.profile)));
        self.step_end = None;
    }

    /// Ends a life: the engine is gone with everything in it.
    pub(crate) fn stop(&mut self) {
        let counters = self.counters();
        self.of_earlier_lives = counters;
        self.engine = None;
        self.step_end = None;
        self.in_flight = 0;
    }

    /// Nobody pays for it any more.
    pub(crate) fn give_back(&mut self, now: u64) {
        self.stop();
        if let Some(since) = self.paid_since.take() {
            self.totals.instance_time += now - since;
        }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.engine.is_some()
    }

    /// Gives it a request. Says when it must be asked to work, unless it will be anyway.
    pub(crate) fn submit(&mut self, now: u64, request: EngineRequest) -> Result<Next, Refused> {
        let Some(engine) = &mut self.engine else { return Ok(Next::Nothing) };
        engine.submit(Duration::from_nanos(now), request)?;
        self.in_flight += 1;
        if self.step_end.is_some() {
            return Ok(Next::Nothing);
        }
        Ok(engine.next_arrival().map_or(Next::Nothing, |arrival| Next::At(nanoseconds(arrival))))
    }

    /// Ends the step that ends now, if one does, and begins the next. Being asked at other times does no harm.
    pub(crate) fn work(&mut self, now: u64, events: &mut Vec<EngineEvent>) -> Next {
        let Some(engine) = &mut self.engine else { return Next::Nothing };
        match self.step_end {
            Some(end) if now < end => return Next::Nothing,
            Some(_) => engine.end_step(events),
            None => {}
        }
        self.step_end = engine.begin_step(Duration::from_nanos(now)).map(nanoseconds);
        match self.step_end {
            Some(end) => Next::At(end),
            None => engine.next_arrival().map_or(Next::Nothing, |arrival| Next::At(nanoseconds(arrival))),
        }
    }

    /// What it did up to now.
    pub(crate) fn totals(&self, now: u64) -> Totals {
        let Counters { evicted_blocks, busy_time } = self.counters();
        let paid = self.paid_since.map_or(0, |since| now - since);
        Totals { evicted_blocks, busy_time, instance_time: self.totals.instance_time + paid }
    }

    fn counters(&self) -> Counters {
        let earlier = self.of_earlier_lives;
        let Some(engine) = &self.engine else { return earlier };
        let statistics = engine.statistics();
        Counters {
            evicted_blocks: earlier.evicted_blocks + statistics.evicted_blocks,
            busy_time: earlier.busy_time + nanoseconds(statistics.busy),
        }
    }
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
