//! Drives the engine model by the wall clock: steps end on absolute deadlines, and lateness never adds up.
//!
//! A step that ends at model time `e` is followed by one that begins at `e`, however late the wall clock was noticed.
//! Before a request enters or leaves, all steps that have ended by then are completed, so the model sees every arrival
//! at its true time. What a late wake-up costs is only that clients see tokens late; that is measured as lag.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use isotherm_engine_model::{Engine, EngineRequest, Event, Profile, Refused, RequestId, Statistics};
use tokio::sync::Notify;

use crate::answer::Finish;
use crate::clock::ModelClock;
use crate::lag::LagRecorder;
use crate::meters::Meters;

/// The engine, its clock, and who waits for what it generates.
#[derive(Debug)]
pub(crate) struct Driver {
    engine: Engine,
    clock: ModelClock,
    /// Configured model seconds per wall second, before any slow-down.
    speed: f64,
    step_end: Option<Duration>,
    /// From the end of a step to the client's seeing its tokens.
    overhead_after: Duration,
    /// Events of completed steps with the model time at which they go out.
    outbox: VecDeque<(Duration, Event)>,
    events: Vec<Event>,
    listeners: HashMap<RequestId, Rc<Progress>>,
    last_id: u64,
    lag: Arc<LagRecorder>,
    meters: Meters,
    rearm: Rc<Notify>,
}

/// A request's name in the engine, and how far it has come.
pub(crate) type Ticket = (RequestId, Rc<Progress>);

/// How far one request has come. The driver writes it; the task that answers the client reads it.
#[derive(Debug)]
pub(crate) struct Progress {
    submitted: Instant,
    /// Why it will end, unless it is aborted.
    finish: Finish,
    tokens: Cell<u32>,
    cached_tokens: Cell<u32>,
    finished: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Progress {
    fn new(submitted: Instant, finish: Finish) -> Self {
        Self {
            submitted,
            finish,
            tokens: Cell::new(0),
            cached_tokens: Cell::new(0),
            finished: Cell::new(false),
            waker: RefCell::new(None),
        }
    }

    /// Tokens generated so far.
    pub(crate) fn tokens(&self) -> u32 {
        self.tokens.get()
    }

    /// Prompt tokens out of the prefix cache; known from the first token on.
    pub(crate) fn cached_tokens(&self) -> u32 {
        self.cached_tokens.get()
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished.get()
    }

    /// Has the task woken at the next change.
    pub(crate) fn register(&self, context: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        match &mut *waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => *waker = Some(context.waker().clone()),
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

impl Driver {
    pub(crate) fn new(profile: Profile, speed: f64, now: Instant, lag: Arc<LagRecorder>) -> Self {
        Self {
            overhead_after: profile.overhead_after,
            engine: Engine::new(profile),
            clock: ModelClock::new(now, speed),
            speed,
            step_end: None,
            outbox: VecDeque::new(),
            events: Vec::new(),
            listeners: HashMap::new(),
            last_id: 0,
            lag,
            meters: Meters::new(),
            rearm: Rc::new(Notify::new()),
        }
    }

    /// Tells whoever sleeps until [`deadline`](Self::deadline) that it may have moved.
    pub(crate) fn rearm_signal(&self) -> Rc<Notify> {
        Rc::clone(&self.rearm)
    }

    /// When [`advance`](Self::advance) has something to do next: tokens to hand out, or a request to admit.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let visible = match (self.outbox.front(), self.step_end) {
            (Some((due, _)), _) => Some(*due),
            (None, Some(end)) => Some(end + self.overhead_after),
            (None, None) => self.engine.next_arrival(),
        };
        visible.map(|model| self.clock.wall_at(model))
    }

    /// Completes every step that has ended by `wall` and hands out what is due.
    pub(crate) fn advance(&mut self, wall: Instant) {
        let now = self.clock.model_at(wall);
        loop {
            match self.step_end {
                Some(end) if end <= now => {
                    self.engine.end_step(&mut self.events);
                    let due = end + self.overhead_after;
                    self.outbox.extend(self.events.drain(..).map(|event| (due, event)));
                    self.step_end = self.engine.begin_step(end);
                }
                Some(_) => break,
                None => match self.engine.next_arrival() {
                    Some(arrival) if arrival <= now => {
                        self.step_end = self.engine.begin_step(arrival);
                    }
                    _ => break,
                },
            }
        }
        self.hand_out(wall, now);
    }

    /// Submits what `request` makes of a fresh id.
    pub(crate) fn submit(
        &mut self,
        wall: Instant,
        finish: Finish,
        request: impl FnOnce(RequestId) -> EngineRequest,
    ) -> Result<Ticket, Refused> {
        self.advance(wall);
        self.last_id += 1;
        let id = RequestId(self.last_id);
        self.engine.submit(self.clock.model_at(wall), request(id))?;
        let progress = Rc::new(Progress::new(wall, finish));
        self.listeners.insert(id, Rc::clone(&progress));
        self.rearm.notify_one();
        Ok((id, progress))
    }

    /// Gives a request up, at once.
    pub(crate) fn abort(&mut self, wall: Instant, id: RequestId) {
        self.advance(wall);
        if self.listeners.remove(&id).is_some() {
            self.engine.abort(id);
            self.meters.aborted();
        }
        self.rearm.notify_one();
    }

    /// Runs the engine `factor` times slower than configured from now on.
    pub(crate) fn slow_down(&mut self, wall: Instant, factor: f64) {
        self.advance(wall);
        self.clock.set_rate(wall, self.speed / factor);
        self.rearm.notify_one();
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.engine.statistics()
    }

    pub(crate) fn meters(&self) -> &Meters {
        &self.meters
    }

    fn hand_out(&mut self, wall: Instant, now: Duration) {
        let mut last_due = None;
        while let Some((due, event)) = self.outbox.pop_front_if(|(due, _)| *due <= now) {
            if last_due != Some(due) {
                last_due = Some(due);
                self.lag.record(wall.saturating_duration_since(self.clock.wall_at(due)));
            }
            self.apply(wall, event);
        }
    }

    fn apply(&mut self, wall: Instant, event: Event) {
        match event {
            Event::FirstToken { id, cached_tokens } => {
                if let Some(progress) = self.listeners.get(&id) {
                    progress.cached_tokens.set(cached_tokens);
                    progress.tokens.set(1);
                    self.meters.first_token(wall - progress.submitted);
                    progress.wake();
                }
            }
            Event::Token { id } => {
                if let Some(progress) = self.listeners.get(&id) {
                    progress.tokens.set(progress.tokens.get() + 1);
                    progress.wake();
                }
            }
            Event::Finished { id, cached_tokens } => {
                if let Some(progress) = self.listeners.remove(&id) {
                    progress.cached_tokens.set(cached_tokens);
                    progress.finished.set(true);
                    self.meters.finished(progress.finish, wall - progress.submitted);
                    progress.wake();
                }
            }
            Event::Preempted { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
