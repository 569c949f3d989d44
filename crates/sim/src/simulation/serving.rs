//! The way of one request: sent, placed, computed, answered; sent again where its instance broke down.

use isotherm_core::{Reason, Time};
use isotherm_engine_model::{EngineRequest, Event as EngineEvent, RequestId};
use isotherm_report::Observation;
use isotherm_workload::{Piece, PlannedRequest};
use rand::RngExt;

use super::{Attempt, Event, InFlight, Next, Simulation};
use crate::prompt::beginnings;
use crate::router::{Answer, Routed};

impl Simulation<'_> {
    /// A session arrives: it sends its first request, and the clock is set for the session after it.
    pub(super) fn arrive(&mut self) {
        if let Some(sender) = self.traffic.arrive() {
            self.send_next(sender);
        }
        if let Some(time) = self.traffic.next_arrival() {
            self.queue.push(time, Event::Arrive);
        }
    }

    /// Sends what a sender has ready.
    pub(super) fn send_next(&mut self, sender: u32) {
        let Some(planned) = self.traffic.take(sender) else { return };
        let observation = self.observations.len();
        self.observations.push(Observation {
            send: self.now,
            ttft: None,
            end: self.now,
            prompt_tokens: u32::try_from(planned.prompt_tokens()).unwrap_or(u32::MAX),
            cached_tokens: Some(0),
            output_tokens: 0,
            instance: None,
            spilled: false,
            failed: false,
        });
        let attempt = Attempt { slot: self.free_slots.pop().unwrap_or(self.slots.len() as u32), number: 0 };
        if attempt.slot as usize == self.slots.len() {
            self.slots.push(None);
        }
        let measured = self.window().contains(&self.now);
        self.collect_pieces(&planned);
        self.clairvoyant.see(&self.beginnings, planned.prompt.len(), measured);
        // A load balancer in front of several routers looks at nothing.
        let router = if self.routers.len() > 1 { self.rng.random_range(0..self.routers.len()) } else { 0 };
        self.place(InFlight {
            attempt,
            sender,
            planned,
            observation,
            router,
            instance: 0,
            answered: false,
            cached_tokens: 0,
            slot: None,
            tried: Vec::new(),
        });
    }

    /// Chooses an instance for a request and gives it the request.
    pub(super) fn place(&mut self, mut request: InFlight) {
        self.attempts += 1;
        request.attempt.number = self.attempts;
        beginnings(&request.planned.prompt, &mut self.beginnings);
        let routed = Routed {
            number: self.attempts,
            request: &request.planned,
            beginnings: &self.beginnings,
            tried: &request.tried,
        };
        let router = &mut self.routers[request.router];
        let Ok(placed) = router.choose(&routed, Time::from_nanoseconds(self.now), &mut self.rng) else {
            self.fail(request);
            return;
        };
        request.instance = placed.instance;
        request.slot = placed.slot;
        let observation = &mut self.observations[request.observation];
        observation.instance = Some(placed.instance);
        observation.spilled = placed.reason == Reason::Spill;
        let engine_request = self.engine_request(&request);
        let slot = request.attempt.slot as usize;
        match self.servers[placed.instance as usize].submit(self.now, engine_request) {
            Ok(next) => {
                if let Next::At(time) = next {
                    self.queue.push(time, Event::Work { instance: placed.instance });
                }
                self.slots[slot] = Some(request);
            }
            Err(_) => {
                self.leave_router(&mut request, true);
                self.fail(request);
            }
        }
    }

    /// Prompt and answer as one sequence: the engine caches both, and the answer comes back in the next prompt.
    fn collect_pieces(&mut self, planned: &PlannedRequest) {
        self.pieces.clear();
        self.pieces.extend_from_slice(&planned.prompt);
        self.pieces.push(Piece::new(planned.output, planned.output_tokens));
        beginnings(&self.pieces, &mut self.beginnings);
    }

    fn engine_request(&mut self, request: &InFlight) -> EngineRequest {
        let planned = &request.planned;
        self.collect_pieces(planned);
        EngineRequest {
            id: RequestId(u64::from(request.attempt.slot)),
            chain: self.chains.chain(&self.pieces, &self.beginnings),
            prompt_tokens: u32::try_from(planned.prompt_tokens()).unwrap_or(u32::MAX),
            output_tokens: planned.output_tokens,
        }
    }

    /// Notes what an engine did; the client sees it at `time`.
    pub(super) fn take_in(&mut self, event: EngineEvent, time: u64) {
        let (id, cached_tokens, finished) = match event {
            EngineEvent::FirstToken { id, cached_tokens } => (id, cached_tokens, false),
            EngineEvent::Finished { id, cached_tokens } => (id, cached_tokens, true),
            EngineEvent::Token { .. } | EngineEvent::Preempted { .. } => return,
        };
        let Some(request) = self.slots[id.0 as usize].as_mut() else { return };
        request.cached_tokens = cached_tokens;
        let request = request.attempt;
        self.queue.push(time, if finished { Event::Finish { request } } else { Event::FirstToken { request } });
    }

    pub(super) fn deliver_first_token(&mut self, attempt: Attempt) {
        let now = self.now;
        let Some(request) = self.slots[attempt.slot as usize].as_mut().filter(|request| request.attempt == attempt)
        else {
            return;
        };
        request.answered = true;
        let observation = &mut self.observations[request.observation];
        observation.ttft = Some(now - observation.send);
        let number = attempt.number;
        let answer = Answer { number, prompt_tokens: 0, cached_tokens: 0, output_tokens: 1, failed: false };
        self.routers[request.router].first_token(&answer, request.slot.as_mut(), Time::from_nanoseconds(now));
    }

    pub(super) fn deliver_end(&mut self, attempt: Attempt) {
        let slot = &mut self.slots[attempt.slot as usize];
        let Some(mut request) = slot.take_if(|request| request.attempt == attempt) else { return };
        self.leave_router(&mut request, false);
        let observation = &mut self.observations[request.observation];
        observation.end = self.now;
        observation.cached_tokens = Some(request.cached_tokens);
        observation.output_tokens = request.planned.output_tokens;
        let server = &mut self.servers[request.instance as usize];
        server.in_flight -= 1;
        if server.leaving && server.in_flight == 0 {
            self.take_away(request.instance);
        }
        self.let_go(request);
    }

    /// A request that is lost with its instance: once, and only while nothing of its answer came, it is sent again.
    pub(super) fn lose(&mut self, mut request: InFlight) {
        self.leave_router(&mut request, true);
        if !request.answered && request.tried.is_empty() {
            request.tried.push(request.instance);
            self.place(request);
        } else {
            self.fail(request);
        }
    }

    fn fail(&mut self, request: InFlight) {
        let observation = &mut self.observations[request.observation];
        observation.end = self.now;
        observation.failed = true;
        self.let_go(request);
    }

    /// The sender is free to go on.
    fn let_go(&mut self, request: InFlight) {
        self.free_slots.push(request.attempt.slot);
        if let Some(think) = self.traffic.after_answer(request.sender) {
            self.queue.push(self.now + think, Event::Send { sender: request.sender });
        }
    }

    fn leave_router(&mut self, request: &mut InFlight, failed: bool) {
        let answer = Answer {
            number: request.attempt.number,
            prompt_tokens: self.observations[request.observation].prompt_tokens,
            cached_tokens: request.cached_tokens,
            output_tokens: if failed { 0 } else { request.planned.output_tokens },
            failed,
        };
        let now = Time::from_nanoseconds(self.now);
        self.routers[request.router].finish(&answer, request.slot.take(), now);
    }
}
