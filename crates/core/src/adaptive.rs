//! What `ADAPTIVE` knows and learns: the work that instances have before them, how fast they do it, what they hold.

mod blocks;
mod capacity;
mod pace;
mod score;

use std::sync::Arc;

pub use self::blocks::{BlockHasher, PromptDigest};
pub(crate) use self::capacity::Capacity;
pub(crate) use self::pace::{OwnPace, Pace};
use self::score::{Load, marginal_latency};
use crate::index::{BlockHash, Match, PrefixIndex, SeatId};
use crate::{Report, Time};

/// Bytes of text that one block of the index stands for: about one block of 16 tokens of an engine, so that the short
/// first turns of chats count, too.
pub const BLOCK_BYTES: u32 = 64;

/// Tokens per byte before any usage was reported: English prose.
const TOKENS_PER_BYTE: f64 = 1.0 / 4.2;
/// Tokens of an answer before any was seen.
const OUTPUT_TOKENS: f64 = 150.0;
/// How much of an average a new observation makes up.
const NEW: f64 = 0.02;
/// What the index may take, in bytes.
const INDEX_BUDGET: usize = 64 << 20;

/// A prompt as `ADAPTIVE` sees it: hashes of its blocks, never text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Chained hashes of its whole blocks of [`BLOCK_BYTES`].
    pub blocks: Arc<[BlockHash]>,
    /// The hash of all of it, with the end that fills no block.
    pub whole: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The hash of the tenant id, which only orders ties: engines do not see it. 0 without one.
    pub tenant: u64,
}

/// What a variant's instances have in common.
#[derive(Debug)]
pub(crate) struct Adaptive {
    pub(crate) index: PrefixIndex,
    /// The pace of all instances together.
    pub(crate) pace: Pace,
    tokens_per_byte: f64,
    output_tokens: f64,
    /// What each instance holds of the prompt that is being placed, by seat. Kept between choices, so that choosing
    /// allocates nothing.
    matches: Vec<Match>,
}

/// What is known of one instance.
#[derive(Debug)]
pub(crate) struct Beliefs {
    pub(crate) seat: SeatId,
    pub(crate) pace: OwnPace,
    capacity: Capacity,
    /// Uncached tokens of requests that were sent there and have no first token yet.
    pub(crate) uncached: f64,
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
    /// The uncached ones, and those of the requests before it.
    load: f64,
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
            output_tokens: OUTPUT_TOKENS,
            matches: Vec::new(),
        }
    }

    /// Makes room for an instance.
    pub(crate) fn join(&mut self) -> Beliefs {
        let (seat, pace) = (self.index.sit(), OwnPace::default());
        Beliefs { seat, pace, capacity: Capacity::default(), uncached: 0.0, process: 0 }
    }

    /// The instance's process is gone, and its cache and whatever waited there with it.
    pub(crate) fn restart(&mut self, instance: &mut Beliefs) {
        self.index.clear(instance.seat);
        instance.uncached = 0.0;
        instance.process += 1;
    }

    /// Looks up what each instance holds of a prompt; returns how many leading blocks anyone holds.
    pub(crate) fn look_up(&mut self, prompt: &Prompt) -> u32 {
        self.index.look_up(&prompt.blocks, &mut self.matches)
    }

    /// What an instance holds of the prompt that was looked up last.
    pub(crate) fn held(&self, instance: &Beliefs) -> Match {
        self.matches.get(instance.seat.0 as usize).copied().unwrap_or_default()
    }

    /// The latency in milliseconds that a prompt adds on an instance that holds so much of it.
    pub(crate) fn score(&self, prompt: &Prompt, instance: &Beliefs, held: Match, in_flight: f64) -> f64 {
        marginal_latency(&Load {
            pace: instance.pace.milliseconds_per_token(&self.pace),
            queued: instance.uncached,
            shared: self.tokens(u64::from(held.blocks.saturating_sub(held.confirmed)) * u64::from(BLOCK_BYTES)),
            in_flight,
            uncached: self.uncached(prompt, held),
            prompt: self.tokens(prompt.bytes),
            output: self.output_tokens,
        })
    }

    /// Tokens of so many bytes of text, by what was learned.
    pub(crate) fn tokens(&self, bytes: u64) -> f64 {
        bytes as f64 * self.tokens_per_byte
    }

    /// Tokens of a prompt that an instance would have to compute: at least one, as engines recompute the last.
    pub(crate) fn uncached(&self, prompt: &Prompt, held: Match) -> f64 {
        let held_bytes = u64::from(held.blocks) * u64::from(BLOCK_BYTES);
        (self.tokens(prompt.bytes.saturating_sub(held_bytes)) - f64::from(held.answer)).max(1.0)
    }

    /// Notes that the prompt that was looked up last is on its way to an instance.
    pub(crate) fn send(&mut self, prompt: &Prompt, instance: &mut Beliefs, now: Time) -> Work {
        let held = self.held(instance);
        let uncached = self.uncached(prompt, held);
        let load = instance.uncached + uncached;
        instance.uncached = load;
        self.index.expect(&prompt.blocks, instance.seat);
        let blocks = Arc::clone(&prompt.blocks);
        let cached = (self.tokens(prompt.bytes) - uncached).max(0.0);
        let process = instance.process;
        Work { blocks, bytes: prompt.bytes, sent: now, uncached, cached, load, held, begun: false, process }
    }

    /// The first token has come: the prompt is in the instance's cache, and how long it took tells the instance's pace.
    pub(crate) fn begin(&mut self, work: &mut Work, instance: &mut Beliefs, now: Time) {
        if !self.answer(work, instance) {
            return;
        }
        let milliseconds = now.since(work.sent).as_secs_f64() * 1e3;
        self.pace.observe(work.load, milliseconds);
        instance.pace.observe(work.load, milliseconds, &self.pace);
    }

    /// The answer has come, all of it at once: the prompt is in the instance's cache, but how long it took tells nothing
    /// of its pace. False when a token has come before, or the process is another one.
    pub(crate) fn answer(&mut self, work: &mut Work, instance: &mut Beliefs) -> bool {
        let first = !std::mem::replace(&mut work.begun, true) && work.process == instance.process;
        if first {
            instance.uncached = (instance.uncached - work.uncached).max(0.0);
            self.index.confirm(&work.blocks, instance.seat);
        }
        first
    }

    /// Takes in what the engine reported of a request.
    pub(crate) fn learn(&mut self, work: &Work, instance: &mut Beliefs, report: &Report) {
        if let Some(tokens) = report.prompt_tokens.filter(|_| work.bytes >= u64::from(BLOCK_BYTES)) {
            // A prompt counts by its length: short ones are mostly template.
            let weight = NEW * (work.bytes as f64 / 4096.0).min(1.0);
            self.tokens_per_byte += weight * (tokens as f64 / work.bytes as f64 - self.tokens_per_byte);
        }
        if let Some(tokens) = report.output_tokens {
            self.index.answered(&work.blocks, instance.seat, u32::try_from(tokens).unwrap_or(u32::MAX));
            self.output_tokens += NEW * (tokens as f64 - self.output_tokens);
        }
        if let (Some(cached), Some(prompt)) = (report.cached_tokens, report.prompt_tokens) {
            let cached_share = cached as f64 / (prompt as f64).max(1.0);
            let believed = 1.0 - work.uncached / self.tokens(work.bytes).max(1.0);
            instance.capacity.compare(&mut self.index, instance.seat, work.held, believed, cached_share);
        }
    }

    /// The request is over; without a first token its prompt is not there.
    pub(crate) fn end(&mut self, work: &Work, instance: &mut Beliefs) {
        if !work.begun && work.process == instance.process {
            instance.uncached = (instance.uncached - work.uncached).max(0.0);
            self.index.withdraw(&work.blocks, instance.seat);
        }
    }
}
