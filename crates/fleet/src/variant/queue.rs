//! The queue before a full variant: who waits, in the order of arrival, and what each waits for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use isotherm_core::{
    Choice, Generation, InstanceId, ModelHash, PrefixKey, Prompt, Refusal, RouteRequest, Time, VariantState,
};
use isotherm_telemetry::Gauge;
use rand_pcg::Pcg64;

use crate::Instance;

/// What came of waiting.
pub(super) type Outcome = Result<Choice<Arc<Instance>>, Refusal>;

/// Names one waiter for as long as it waits; later ones have greater numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// Waiters in the order of their arrival, those that were placed but have not fetched their outcome yet included.
///
/// Room is handed over, not announced: whoever frees a slot places the first waiter that fits, so that no newcomer can
/// take the room in between and no wake-up can be lost. Between two calls, no waiter could be placed.
#[derive(Debug)]
pub(super) struct Queue {
    waiters: VecDeque<Waiter>,
    next_ticket: u64,
    /// How many of the waiters have no outcome yet.
    waiting: usize,
    /// Tells how many wait.
    gauge: Gauge,
}

#[derive(Debug)]
struct Waiter {
    ticket: Ticket,
    key: Option<PrefixKey>,
    prompt: Option<Prompt>,
    wants: Wants,
    rng: Pcg64,
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

/// Which instances could serve a waiter: when one that wants the same finds all of them full, so does this one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wants {
    model: Option<ModelHash>,
    pinned: Option<InstanceId>,
    within: Option<Box<[InstanceId]>>,
    tried: Box<[Generation]>,
}

impl Queue {
    /// Nobody waits; `gauge` follows how many do.
    pub(super) fn new(gauge: Gauge) -> Queue {
        Queue { waiters: VecDeque::new(), next_ticket: 0, waiting: 0, gauge }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Lets a request wait at the end.
    pub(super) fn join(&mut self, request: &RouteRequest<'_>, rng: Pcg64) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let wants = Wants {
            model: request.model,
            pinned: request.pinned.cloned(),
            within: request.within.map(Box::from),
            tried: Box::from(request.tried),
        };
        self.waiters.push_back(Waiter {
            ticket,
            key: request.key,
            prompt: request.prompt.cloned(),
            wants,
            rng,
            outcome: None,
            waker: None,
        });
        self.count(1);
        ticket
    }

    /// Places every waiter that can be placed, oldest first; the wakers returned are theirs.
    pub(super) fn place(&mut self, state: &mut VariantState<Arc<Instance>>, now: Time) -> Vec<Waker> {
        let mut placed = 0;
        let mut wakers = Vec::new();
        let mut without_room: Vec<Wants> = Vec::new();
        for waiter in self.waiters.iter_mut().filter(|waiter| waiter.outcome.is_none()) {
            if without_room.contains(&waiter.wants) {
                continue;
            }
            match waiter.choose(state, now) {
                Err(Refusal::Full) => without_room.push(waiter.wants.clone()),
                outcome => {
                    waiter.outcome = Some(outcome);
                    placed += 1;
                    wakers.extend(waiter.waker.take());
                }
            }
        }
        self.count(-placed);
        wakers
    }

    /// Takes a waiter's outcome, and the waiter with it. While there is none, the waker is kept for when there is.
    pub(super) fn poll(&mut self, ticket: Ticket, waker: &Waker) -> Option<Outcome> {
        let index = self.index_of(ticket)?;
        let waiter = &mut self.waiters[index];
        match waiter.outcome.take() {
            Some(outcome) => {
                self.waiters.remove(index);
                Some(outcome)
            }
            None => {
                match &mut waiter.waker {
                    Some(kept) => kept.clone_from(waker),
                    None => waiter.waker = Some(waker.clone()),
                }
                None
            }
        }
    }

    /// Takes a waiter out; its outcome if it has one already, which is then to be undone.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Outcome> {
        let waiter = self.waiters.remove(self.index_of(ticket)?)?;
        if waiter.outcome.is_none() {
            self.count(-1);
        }
        waiter.outcome
    }

    /// Whether a waiter has no outcome yet.
    pub(super) fn is_waiting(&self, ticket: Ticket) -> bool {
        self.index_of(ticket).is_some_and(|index| self.waiters[index].outcome.is_none())
    }

    fn count(&mut self, change: isize) {
        self.waiting = self.waiting.saturating_add_signed(change);
        // Another variant of that name may count in the same gauge while a deployment goes on.
        self.gauge.inc_by(change as i64);
    }

    fn index_of(&self, ticket: Ticket) -> Option<usize> {
        self.waiters.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok()
    }
}

impl Waiter {
    fn choose(&mut self, state: &mut VariantState<Arc<Instance>>, now: Time) -> Outcome {
        let request = RouteRequest {
            key: self.key,
            prompt: self.prompt.as_ref(),
            model: self.wants.model,
            pinned: self.wants.pinned.as_ref(),
            within: self.wants.within.as_deref(),
            tried: &self.wants.tried,
        };
        state.choose(&request, now, &mut self.rng)
    }
}
