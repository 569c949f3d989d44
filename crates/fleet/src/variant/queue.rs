//! The queue before a full variant: who waits, in which order, and what each waits for.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use isotherm_core::{
    Choice, Generation, InstanceId, ModelHash, PrefixKey, Prompt, Reason, Refusal, RouteRequest, Time, VariantState,
};
use isotherm_telemetry::Gauge;
use rand_pcg::Pcg64;

use crate::Instance;

/// So long a waiter waits for room on its home; from then on it takes any. Room on an instance that nobody's prompt is
/// warm on is worth less than room at home that comes a moment later.
pub const LONGEST_FOR_HOME: Duration = Duration::from_millis(100);

/// So many waiters are looked at for one whose home has room: it bounds what freeing a slot costs.
const LOOK_AHEAD: usize = 64;

/// What came of waiting.
pub(super) type Outcome = Result<Choice<Arc<Instance>>, NotPlaced>;

/// Why waiting came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotPlaced {
    /// Nothing is left that could serve the request; never [`Refusal::Full`].
    Refused(Refusal),
    /// The queue was full, and one came that goes before it: of a lower priority, or of a tenant that waits for less.
    Displaced,
    /// The variant's share of the traffic became 0: another one of its endpoint's is to serve the request.
    Moved,
}

/// Where a request stands in the queue.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rank<'a> {
    /// Lower goes first, as in vLLM; 0 where nothing is said.
    pub priority: i64,
    /// The authenticated tenant: those of one priority get room in turn.
    pub tenant: Option<&'a str>,
    /// The bytes that are kept for it while it waits.
    pub bytes: u64,
}

/// How much may wait.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Requests.
    pub waiting: u32,
    /// Bytes of their bodies.
    pub bytes: u64,
}

/// Names one waiter for as long as it waits; later ones have greater numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// Where a waiter stands: by priority; then by tenant in turn; then by arrival.
///
/// `turn` is its start tag (Goyal, Vin and Cheng, "Start-time fair queueing", 1996): one more than that of its tenant's
/// waiter before it, and no less than that of whoever was placed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Standing {
    priority: i64,
    turn: u64,
    ticket: Ticket,
}

impl Ord for Standing {
    fn cmp(&self, other: &Standing) -> Ordering {
        (self.priority, self.turn, self.ticket).cmp(&(other.priority, other.turn, other.ticket))
    }
}

impl PartialOrd for Standing {
    fn partial_cmp(&self, other: &Standing) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Waiters in the order of their arrival, those that have an outcome but have not fetched it yet included.
///
/// Room is handed over, not announced: whoever frees a slot places the first waiter that fits, so that no wake-up can be
/// lost. Between two calls, no waiter could be placed but for one that still waits for its home.
#[derive(Debug)]
pub(super) struct Queue {
    waiters: VecDeque<Waiter>,
    /// Those that have no outcome yet.
    order: BTreeSet<Standing>,
    next_ticket: u64,
    /// The bytes that are kept for them.
    bytes: u64,
    /// The turn of whoever was placed last.
    clock: u64,
    /// The turn of each tenant's last waiter.
    turns: HashMap<Box<str>, u64>,
    /// Tells how many wait.
    gauge: Gauge,
}

#[derive(Debug)]
struct Waiter {
    standing: Standing,
    tenant: Box<str>,
    since: Time,
    bytes: u64,
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
        Queue {
            waiters: VecDeque::new(),
            order: BTreeSet::new(),
            next_ticket: 0,
            bytes: 0,
            clock: 0,
            turns: HashMap::new(),
            gauge,
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Lets a request wait.
    pub(super) fn join(&mut self, request: &RouteRequest<'_>, rank: Rank<'_>, now: Time, rng: Pcg64) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let tenant: Box<str> = rank.tenant.unwrap_or_default().into();
        let standing = Standing { priority: rank.priority, turn: self.turn(&tenant), ticket };
        let wants = Wants {
            model: request.model,
            pinned: request.pinned.cloned(),
            within: request.within.map(Box::from),
            tried: Box::from(request.tried),
        };
        self.waiters.push_back(Waiter {
            standing,
            tenant,
            since: now,
            bytes: rank.bytes,
            key: request.key,
            prompt: request.prompt.cloned(),
            wants,
            rng,
            outcome: None,
            waker: None,
        });
        self.order.insert(standing);
        self.bytes += rank.bytes;
        self.gauge.inc();
        ticket
    }

    /// The next turn of a tenant.
    fn turn(&mut self, tenant: &str) -> u64 {
        // Those whose turns have passed are as if they had never waited.
        if self.is_empty() || self.turns.len() > 2 * self.len() + 64 {
            let clock = self.clock;
            self.turns.retain(|_, turn| *turn >= clock);
        }
        let next = self.turns.get(tenant).map_or(self.clock, |last| (last + 1).max(self.clock));
        self.turns.insert(tenant.into(), next);
        next
    }

    /// Sends those away that stand last, until no more wait than may; the wakers returned are theirs.
    pub(super) fn displace(&mut self, bounds: Bounds) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while self.len() > bounds.waiting as usize || self.bytes > bounds.bytes {
            let Some(last) = self.order.last().copied() else { break };
            wakers.extend(self.decide(last, Err(NotPlaced::Displaced)));
        }
        wakers
    }

    /// Sends all away, since traffic goes elsewhere from now on; the wakers returned are theirs, in their order.
    pub(super) fn move_on(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        // From the end, since whoever leaves passes its turn on to those behind it.
        while let Some(last) = self.order.last().copied() {
            wakers.extend(self.decide(last, Err(NotPlaced::Moved)));
        }
        wakers.reverse();
        wakers
    }

    /// Places every waiter that can be placed; the wakers returned are theirs.
    pub(super) fn place(&mut self, state: &mut VariantState<Arc<Instance>>, now: Time) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some((standing, outcome)) = self.next(state, now) {
            wakers.extend(self.decide(standing, outcome));
        }
        wakers
    }

    /// The next waiter that has an outcome: the first that finds room at home, else the first that has waited for that
    /// long enough.
    fn next(&mut self, state: &mut VariantState<Arc<Instance>>, now: Time) -> Option<(Standing, Outcome)> {
        let mut without_room: Vec<Wants> = Vec::new();
        let mut away_from_home: Option<Standing> = None;
        let mut looked = 0;
        for &standing in &self.order {
            let index = index_of(&self.waiters, standing.ticket)?;
            let waiter = &mut self.waiters[index];
            if without_room.contains(&waiter.wants) {
                continue;
            }
            match waiter.choose(state, now) {
                Err(Refusal::Full) => without_room.push(waiter.wants.clone()),
                Err(refusal) => return Some((standing, Err(NotPlaced::Refused(refusal)))),
                Ok(choice) if is_away_from_home(&choice) => {
                    state.finish(choice.slot);
                    away_from_home.get_or_insert(standing);
                    looked += 1;
                    if looked == LOOK_AHEAD {
                        break;
                    }
                }
                Ok(choice) => return Some((standing, Ok(choice))),
            }
        }
        let standing = away_from_home?;
        let index = index_of(&self.waiters, standing.ticket)?;
        let waiter = &mut self.waiters[index];
        let patient = now.since(waiter.since) < LONGEST_FOR_HOME;
        let choice = if patient { None } else { waiter.choose(state, now).ok() };
        choice.map(|choice| (standing, Ok(choice)))
    }

    /// Settles what comes of a waiter; its waker, if it has left one.
    fn decide(&mut self, standing: Standing, outcome: Outcome) -> Option<Waker> {
        self.take_out(standing, outcome.is_ok());
        let index = index_of(&self.waiters, standing.ticket)?;
        let waiter = &mut self.waiters[index];
        waiter.outcome = Some(outcome);
        waiter.waker.take()
    }

    /// Takes a waiter's outcome, and the waiter with it. While there is none, the waker is kept for when there is.
    pub(super) fn poll(&mut self, ticket: Ticket, waker: &Waker) -> Option<Outcome> {
        let index = index_of(&self.waiters, ticket)?;
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
        let index = index_of(&self.waiters, ticket)?;
        let standing = self.waiters[index].standing;
        self.take_out(standing, false);
        self.waiters.remove(index)?.outcome
    }

    /// A waiter waits no longer, if it did.
    fn take_out(&mut self, standing: Standing, placed: bool) {
        if !self.order.remove(&standing) {
            return;
        }
        // Another variant of that name may count in the same gauge while a deployment goes on.
        self.gauge.dec();
        let Some(index) = index_of(&self.waiters, standing.ticket) else { return };
        self.bytes -= self.waiters[index].bytes;
        if placed {
            self.clock = self.clock.max(standing.turn);
        } else {
            let tenant = self.waiters[index].tenant.clone();
            self.pass_turn_on(standing, &tenant);
        }
    }

    /// The turn of a waiter that was not placed is that of its tenant's next one, and so on.
    fn pass_turn_on(&mut self, standing: Standing, tenant: &str) {
        if let Some(last) = self.turns.get_mut(tenant) {
            *last = last.saturating_sub(1);
        }
        for waiter in self.waiters.iter_mut().filter(|waiter| *waiter.tenant == *tenant) {
            if waiter.standing.turn > standing.turn && self.order.remove(&waiter.standing) {
                waiter.standing.turn -= 1;
                self.order.insert(waiter.standing);
            }
        }
    }
}

fn index_of(waiters: &VecDeque<Waiter>, ticket: Ticket) -> Option<usize> {
    waiters.binary_search_by_key(&ticket, |waiter| waiter.standing.ticket).ok()
}

/// Whether a prompt was placed away from its home, and only because that has no room.
pub(super) fn is_away_from_home(choice: &Choice<Arc<Instance>>) -> bool {
    let decision = &choice.decision;
    let for_want_of_room = matches!(decision.reason, Reason::Spill | Reason::Saturated);
    for_want_of_room && decision.home.as_ref().is_some_and(|home| *home != decision.chosen)
}

impl Waiter {
    fn choose(&mut self, state: &mut VariantState<Arc<Instance>>, now: Time) -> Result<Choice<Arc<Instance>>, Refusal> {
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
