//! What `ADAPTIVE` knows and learns: the work that instances have before them, how fast they do it, what they hold.

mod blocks;
mod capacity;
mod pace;
mod score;
#[cfg(test)]
mod tests;
mod waiting;
mod work;

use std::sync::Arc;

pub use self::blocks::{BlockHasher, PromptDigest};
use self::capacity::{Capacity, Found};
use self::pace::FirstToken;
pub(crate) use self::pace::{OwnPace, Pace};
use self::score::{Load, marginal_latency};
use self::waiting::{Place, Waiting};
use self::work::work_per_token;
use crate::index::{BlockHash, Known, Match, PrefixIndex, SeatId};
use crate::{Report, Time};

/// Bytes of text that a block of the index stands for at most: about one block of 16 tokens of an engine. The last one of
/// a message is shorter.
pub const BLOCK_BYTES: u32 = 64;

/// Tokens per byte before any usage was reported: English prose.
const TOKENS_PER_BYTE: f64 = 1.0 / 4.2;
/// Tokens of an answer before any was seen.
const OUTPUT_TOKENS: f64 = 150.0;
/// How much of an average a new observation makes up.
const NEW: f64 = 0.02;
/// Tokens that an engine computes in one step at most (vLLM's `max_num_batched_tokens`): so much of what came later can
/// have delayed a first token, the rest has waited.
const STEP_TOKENS: f64 = 8_192.0;
/// What the index may take, in bytes.
const INDEX_BUDGET: usize = 64 << 20;

/// A prompt as `ADAPTIVE` sees it: hashes of its blocks, never text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Chained hashes of its blocks: each ends after [`BLOCK_BYTES`], with its message, or with the prompt.
    pub blocks: Arc<[BlockHash]>,
    /// Where each block ends, in bytes from the prompt's beginning.
    pub ends: Arc<[u32]>,
    /// The hash of the tenant id, which only orders ties: engines do not see it. 0 without one.
    pub tenant: u64,
}

impl Prompt {
    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes_of(self.blocks.len() as u32)
    }

    /// The length of its first so many blocks, in bytes.
    pub(crate) fn bytes_of(&self, blocks: u32) -> u64 {
        let last = (blocks as usize).min(self.ends.len()).checked_sub(1);
        last.map_or(0, |last| u64::from(self.ends[last]))
    }
}

/// What a variant's instances have in common.
#[derive(Debug)]
pub(crate) struct Adaptive {
    pub(crate) index: PrefixIndex,
    /// The pace of all instances together.
    pub(crate) pace: Pace,
    tokens_per_byte: f64,
    /// Prompts that it was learned from, the short ones as parts of one.
    prompts: f64,
    output_tokens: f64,
    /// What anyone holds of the prompt that is being placed.
    known: Known,
    /// The pace of all instances together when it was looked up.
    common_pace: f64,
    /// What each instance holds of it, by seat. Kept between choices, so that choosing allocates nothing.
    matches: Vec<Match>,
    /// What each candidate scores, for the same reason.
    pub(crate) scores: Vec<f64>,
}

/// What is known of one instance.
#[derive(Debug)]
pub(crate) struct Beliefs {
    pub(crate) seat: SeatId,
    pub(crate) pace: OwnPace,
    capacity: Capacity,
    pub(crate) waiting: Waiting,
    /// Counts the processes that the instance has been: what was sent to an earlier one tells nothing of this one.
    process: u32,
}

/// What a request was believed to cost where it was sent; kept with its slot until it has finished.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Work {
    blocks: Arc<[BlockHash]>,
    bytes: u64,
    sent: Time,
    /// Tokens that it was believed to need computed.
    uncached: f64,
    /// Tokens that were believed to be cached.
    pub(crate) cached: f64,
    /// The part of the prompt that an earlier request had confirmed to be there, 0 to 1.
    confirmed: f64,
    /// The work of the uncached ones, and what was left of that of the requests before it.
    load: f64,
    place: Place,
    held: Match,
    /// Whether the first token has come.
    begun: bool,
    /// The process that it was sent to.
    process: u32,
}

impl Adaptive {
    pub(crate) fn new() -> Adaptive {
        Adaptive {
            index: PrefixIndex::new(INDEX_BUDGET),
            pace: Pace::default(),
            tokens_per_byte: TOKENS_PER_BYTE,
            prompts: 0.0,
            output_tokens: OUTPUT_TOKENS,
            known: Known::default(),
            common_pace: Pace::default().milliseconds_per_token(),
            matches: Vec::new(),
            scores: Vec::new(),
        }
    }

    /// Makes room for an instance.
    pub(crate) fn join(&mut self) -> Beliefs {
        let (seat, pace) = (self.index.sit(), OwnPace::default());
        Beliefs { seat, pace, capacity: Capacity::default(), waiting: Waiting::default(), process: 0 }
    }

    /// The instance's process is gone, and its cache and whatever waited there with it.
    pub(crate) fn restart(&mut self, instance: &mut Beliefs) {
        self.index.clear(instance.seat);
        instance.waiting.clear();
        instance.process += 1;
    }

    /// Looks up what each instance holds of a prompt.
    pub(crate) fn look_up(&mut self, prompt: &Prompt) {
        self.common_pace = self.pace.milliseconds_per_token();
        self.known = self.index.look_up(&prompt.blocks, &mut self.matches);
    }

    /// How many leading blocks anyone holds of the prompt that was looked up last.
    pub(crate) fn known_blocks(&self) -> u32 {
        self.known.blocks
    }

    /// What an instance holds of the prompt that was looked up last.
    pub(crate) fn held(&self, instance: &Beliefs) -> Match {
        self.matches.get(instance.seat.0 as usize).copied().unwrap_or_default()
    }

    /// The latency in milliseconds that a prompt adds on an instance that holds so much of it.
    pub(crate) fn score(&self, prompt: &Prompt, instance: &Beliefs, in_flight: f64, now: Time) -> f64 {
        let held = self.held(instance);
        let pace = self.pace_of(instance);
        let (tokens, uncached) = (self.tokens(prompt.bytes()), self.uncached(prompt, held));
        marginal_latency(&Load {
            pace,
            queued: instance.waiting.left(now, pace),
            shared: self.tokens(prompt.bytes_of(held.blocks).saturating_sub(prompt.bytes_of(held.confirmed))),
            in_flight,
            uncached: self.weighed(prompt, held) * work_per_token(tokens, uncached),
            displaced: if self.index.is_full(instance.seat) { uncached } else { 0.0 },
            prompt: tokens,
            output: self.output_tokens,
        })
    }

    fn pace_of(&self, instance: &Beliefs) -> f64 {
        instance.pace.milliseconds_per_token(&self.pace, self.common_pace)
    }

    /// Tokens of so many bytes of text, by what was learned.
    pub(crate) fn tokens(&self, bytes: u64) -> f64 {
        bytes as f64 * self.tokens_per_byte
    }

    /// Tokens of a prompt that an instance would have to compute: at least one, as engines recompute the last.
    pub(crate) fn uncached(&self, prompt: &Prompt, held: Match) -> f64 {
        let missing = prompt.bytes().saturating_sub(prompt.bytes_of(held.blocks));
        (self.tokens(missing) - f64::from(held.answer)).max(1.0)
    }

    /// The uncached tokens, those that later requests will use weighing less.
    fn weighed(&self, prompt: &Prompt, held: Match) -> f64 {
        let blocks_elsewhere = f64::from(self.known.blocks.saturating_sub(held.blocks));
        let weight = ((self.known.weight - held.weight) / blocks_elsewhere.max(1.0)).max(0.0);
        let (known, held_bytes) = (prompt.bytes_of(self.known.blocks), prompt.bytes_of(held.blocks));
        let elsewhere = weight * self.tokens(known.saturating_sub(held_bytes));
        let new = self.tokens(prompt.bytes().saturating_sub(known));
        (elsewhere + new - f64::from(held.answer)).max(1.0)
    }

    /// Notes that the prompt that was looked up last is on its way to an instance.
    pub(crate) fn send(&mut self, prompt: &Prompt, instance: &mut Beliefs, now: Time) -> Work {
        let held = self.held(instance);
        let uncached = self.uncached(prompt, held);
        let work = uncached * work_per_token(self.tokens(prompt.bytes()), uncached);
        let load = instance.waiting.left(now, self.pace_of(instance)) + work;
        let place = instance.waiting.push(work, now);
        self.index.expect(&prompt.blocks, instance.seat);
        let blocks = Arc::clone(&prompt.blocks);
        let bytes = prompt.bytes();
        let cached = (self.tokens(bytes) - uncached).max(0.0);
        let confirmed = prompt.bytes_of(held.confirmed) as f64 / (bytes as f64).max(1.0);
        let process = instance.process;
        Work { blocks, bytes, sent: now, uncached, cached, confirmed, load, place, held, begun: false, process }
    }

    /// The first token has come: the prompt is in the instance's cache, and how long it took tells the instance's pace.
    pub(crate) fn begin(&mut self, work: &mut Work, instance: &mut Beliefs, now: Time) {
        if !self.answer(work, instance) {
            return;
        }
        instance.waiting.one_began(now);
        let milliseconds = now.since(work.sent).as_secs_f64() * 1e3;
        // What was sent after it may have been computed with it, or not: the more of that, the less it tells.
        let load = work.load + instance.waiting.sent_after(work.place).min(STEP_TOKENS);
        let seen = FirstToken { load, milliseconds, weight: work.load / load };
        self.pace.observe(seen);
        instance.pace.observe(seen, &self.pace);
    }

    /// The answer has come, all of it at once: the prompt is in the instance's cache, but how long it took tells nothing
    /// of its pace. False when a token has come before, or the process is another one.
    pub(crate) fn answer(&mut self, work: &mut Work, instance: &mut Beliefs) -> bool {
        let first = !std::mem::replace(&mut work.begun, true) && work.process == instance.process;
        if first {
            instance.waiting.remove(work.place);
            self.index.confirm(&work.blocks, instance.seat);
        }
        first
    }

    /// Takes in what the engine reported of a request.
    pub(crate) fn learn(&mut self, work: &Work, instance: &mut Beliefs, report: &Report) {
        if let Some(tokens) = report.prompt_tokens.filter(|_| work.bytes >= u64::from(BLOCK_BYTES)) {
            // A prompt counts by its length: short ones are mostly template. The first ones count more.
            let new = (1.0 / (2.0 + self.prompts)).max(NEW);
            let weight = new * (work.bytes as f64 / 4096.0).min(1.0);
            self.prompts += weight / new;
            self.tokens_per_byte += weight * (tokens as f64 / work.bytes as f64 - self.tokens_per_byte);
        }
        if let Some(tokens) = report.output_tokens {
            self.index.answered(&work.blocks, instance.seat, u32::try_from(tokens).unwrap_or(u32::MAX));
            self.output_tokens += NEW * (tokens as f64 - self.output_tokens);
        }
        if let (Some(cached), Some(prompt)) = (report.cached_tokens, report.prompt_tokens) {
            let tokens = prompt as f64;
            let believed = (1.0 - work.uncached / self.tokens(work.bytes).max(1.0)) * tokens;
            let found = Found { confirmed: work.confirmed * tokens, believed, cached: cached as f64, prompt: tokens };
            instance.capacity.compare(&mut self.index, instance.seat, work.held, found);
        }
    }

    /// The request is over; without a first token its prompt is not there.
    pub(crate) fn end(&mut self, work: &Work, instance: &mut Beliefs) {
        if !work.begun && work.process == instance.process {
            instance.waiting.remove(work.place);
            self.index.withdraw(&work.blocks, instance.seat);
        }
    }
}
