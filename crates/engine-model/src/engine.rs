//! The scheduler: continuous batching with one token budget per step, as a state machine.

mod plan;
mod sequence;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::Duration;

use crate::block::BLOCK_TOKENS;
use crate::cache::BlockPool;
use crate::profile::{BlockVisibility, Profile};
use crate::request::{EngineRequest, Refused, RequestId};
use crate::statistics::Statistics;
use sequence::Sequence;

/// An engine: requests go in, steps are planned and completed, events come out.
///
/// Times are durations since a start that the driver chooses; they must not go backwards. Equal calls with equal
/// arguments give equal results: there is no clock and no randomness inside.
#[derive(Debug)]
pub struct Engine {
    profile: Profile,
    token_budget: u32,
    max_running: usize,
    pool: BlockPool,
    /// Ids of all requests that are not finished and not aborted.
    live: HashSet<RequestId>,
    /// Requests on their way to the scheduler, by the time of their arrival and the order of their submission.
    arriving: BTreeMap<(Duration, u64), Sequence>,
    submissions: u64,
    waiting: VecDeque<Sequence>,
    /// In the order of admission.
    running: Vec<Sequence>,
    step: Option<Step>,
    /// Requests preempted while the running step was planned.
    preempted: Vec<RequestId>,
    counters: Statistics,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    duration: Duration,
    end: Duration,
}

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
    /// All tokens are generated; the request has left the engine. Comes after the event of its last token. A request
    /// without output tokens gets only this one, when its prompt is computed.
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

impl Engine {
    /// An idle engine with a cold cache.
    pub fn new(profile: Profile) -> Self {
        let capacity = u32::try_from(profile.kv_capacity_tokens / u64::from(BLOCK_TOKENS)).unwrap_or(u32::MAX - 1);
        Self {
            token_budget: profile.max_num_batched_tokens.max(1),
            max_running: profile.max_num_seqs.max(1) as usize,
            pool: BlockPool::new(capacity),
            profile,
            live: HashSet::new(),
            arriving: BTreeMap::new(),
            submissions: 0,
            waiting: VecDeque::new(),
            running: Vec::new(),
            step: None,
            preempted: Vec::new(),
            counters: Statistics::default(),
        }
    }

    /// What it pretends to be.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Takes a request. It joins the waiting queue after the profile's overhead and its tokenization.
    pub fn submit(&mut self, now: Duration, request: EngineRequest) -> Result<(), Refused> {
        self.check(&request)?;
        self.live.insert(request.id);
        let arrival = now + self.profile.arrival_delay(request.prompt_tokens);
        self.arriving.insert((arrival, self.submissions), Sequence::new(request));
        self.submissions += 1;
        Ok(())
    }

    /// Gives a request up. While a step computes it, it keeps its blocks until that step ends, for a step cannot be
    /// interrupted; else they are free at once. No event follows. False if the engine does not hold it (any more).
    pub fn abort(&mut self, id: RequestId) -> bool {
        if !self.live.remove(&id) {
            return false;
        }
        self.counters.aborted += 1;
        self.preempted.retain(|&preempted| preempted != id);
        let arriving = self.arriving.iter().find(|(_, sequence)| sequence.id == id).map(|(&key, _)| key);
        if let Some(key) = arriving {
            self.arriving.remove(&key);
        } else if let Some(place) = self.waiting.iter().position(|sequence| sequence.id == id) {
            self.waiting.remove(place);
        } else if let Some(place) = self.running.iter().position(|sequence| sequence.id == id) {
            if self.running[place].planned > 0 {
                self.running[place].leaves = true;
            } else {
                self.running.remove(place).release_blocks(&mut self.pool);
            }
        }
        true
    }

    /// When the next submitted request joins the waiting queue: when [`begin_step`](Self::begin_step) gave `None`, call
    /// it again then.
    pub fn next_arrival(&self) -> Option<Duration> {
        self.arriving.first_key_value().map(|(&(arrival, _), _)| arrival)
    }

    /// Plans a step that begins now, and tells when it ends; `None` when there is nothing to compute. While a step is
    /// running it changes nothing and tells that step's end.
    pub fn begin_step(&mut self, now: Duration) -> Option<Duration> {
        if let Some(step) = self.step {
            return Some(step.end);
        }
        while let Some(entry) = self.arriving.first_entry().filter(|entry| entry.key().0 <= now) {
            self.waiting.push_back(entry.remove());
        }
        let work = self.plan();
        if work.tokens == 0 {
            return None;
        }
        let duration = self.profile.step_duration(&work);
        self.step = Some(Step { duration, end: now + duration });
        Some(now + duration)
    }

    /// Completes the running step and appends what happened, in the order of admission; without a running step it does
    /// nothing. Call it when the step's end is reached. Clients see these events the profile's `overhead_after` later:
    /// delaying them is the driver's part.
    pub fn end_step(&mut self, events: &mut Vec<Event>) {
        let Some(step) = self.step.take() else { return };
        self.counters.steps += 1;
        self.counters.busy += step.duration;
        events.extend(self.preempted.drain(..).map(|id| Event::Preempted { id }));
        let mut leaving = false;
        for sequence in self.running.iter_mut().filter(|sequence| sequence.planned > 0) {
            sequence.computed += std::mem::take(&mut sequence.planned);
            if self.profile.block_visibility == BlockVisibility::AfterStep {
                sequence.store_full_blocks(sequence.computed, &mut self.pool);
            }
            if !sequence.leaves && sequence.missing() == 0 && generate(sequence, &mut self.counters, events) {
                self.live.remove(&sequence.id);
                sequence.leaves = true;
            }
            if sequence.leaves {
                sequence.release_blocks(&mut self.pool);
                leaving = true;
            }
        }
        if leaving {
            self.running.retain(|sequence| !sequence.leaves);
        }
    }

    /// Gauges and counters as of now.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            arriving: self.arriving.len(),
            waiting: self.waiting.len(),
            running: self.running.len(),
            used_blocks: self.pool.capacity() - self.pool.free(),
            capacity_blocks: self.pool.capacity(),
            evicted_blocks: self.pool.evicted(),
            ..self.counters
        }
    }

    fn check(&self, request: &EngineRequest) -> Result<(), Refused> {
        let id = request.id;
        if request.prompt_tokens == 0 {
            return Err(Refused::EmptyPrompt { id });
        }
        // The last generated token is never computed, so it needs no room.
        let tokens = u64::from(request.prompt_tokens) + u64::from(request.output_tokens.saturating_sub(1));
        let needed_tokens = tokens.next_multiple_of(u64::from(BLOCK_TOKENS));
        let capacity_tokens = self.pool.capacity() as u64 * u64::from(BLOCK_TOKENS);
        if needed_tokens > capacity_tokens {
            return Err(Refused::NeverFits { id, needed_tokens, capacity_tokens });
        }
        if self.live.contains(&id) { Err(Refused::DuplicateId { id }) } else { Ok(()) }
    }
}

/// The next token of a request whose known tokens are all computed. Returns whether that was its last.
fn generate(sequence: &mut Sequence, counters: &mut Statistics, events: &mut Vec<Event>) -> bool {
    let id = sequence.id;
    let cached_tokens = sequence.cached_tokens.unwrap_or_default();
    if sequence.generated == 0 {
        counters.prompt_tokens += u64::from(sequence.prompt_tokens);
    }
    if sequence.generated < sequence.output_tokens {
        sequence.generated += 1;
        counters.generation_tokens += 1;
        let first = sequence.generated == 1;
        events.push(if first { Event::FirstToken { id, cached_tokens } } else { Event::Token { id } });
    }
    let finished = sequence.generated == sequence.output_tokens;
    if finished {
        counters.finished += 1;
        events.push(Event::Finished { id, cached_tokens });
    }
    finished
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
