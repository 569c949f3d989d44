//! What `ADAPTIVE` knows and learns: the work that instances have before them, how fast they do it, what they hold.

mod blocks;
mod capacity;
mod pace;
mod score;

use std::sync::Arc;

pub use self::blocks::BlockHasher;
pub(crate) use self::capacity::Capacity;
pub(crate) use self::pace::Pace;
pub(crate) use self::score::{Load, marginal_latency};
use crate::index::{BlockHash, Match, PrefixIndex, SeatId};
use crate::{Report, Time};

/// Bytes of text that one block of the index stands for.
pub const BLOCK_BYTES: u32 = 256;

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
    /// The pace of all instances together, from which a new one starts.
    pub(crate) pace: Pace,
    tokens_per_byte: f64,
    output_tokens: f64,
    /// Kept between choices, so that choosing allocates nothing.
    pub(crate) matches: Vec<Match>,
}

/// What is known of one instance.
#[derive(Debug)]
pub(crate) struct Beliefs {
    pub(crate) seat: SeatId,
    pub(crate) pace: Pace,
    capacity: Capacity,
    /// Uncached tokens of requests that were sent there and have no first token yet.
    pub(crate) uncached: f64,
}

/// What a request was believed to cost where it was sent; kept with its slot until it has finished.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Work {
    blocks: Arc<[BlockHash]>,
    bytes: u64,
    sent: Time,
    /// Tokens that it was believed to need computed.
    pub(crate) uncached: f64,
    /// Those, and those of the requests before it.
    load: f64,
    held: Match,
    /// Whether the first token has come.
    begun: bool,
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
        Beliefs { seat: self.index.sit(), pace: self.pace.begin(), capacity: Capacity::default(), uncached: 0.0 }
    }

    /// Tokens of so many bytes of text, by what was learned.
    pub(crate) fn tokens(&self, bytes: u64) -> f64 {
        bytes as f64 * self.tokens_per_byte
    }

    /// Tokens of an answer, by what was learned.
    pub(crate) fn output_tokens(&self) -> f64 {
        self.output_tokens
    }

    /// Tokens of a prompt that an instance would have to compute: at least one, as engines recompute the last.
    pub(crate) fn uncached(&self, prompt: &Prompt, held: Match) -> f64 {
        let held = u64::from(held.blocks) * u64::from(BLOCK_BYTES);
        self.tokens(prompt.bytes.saturating_sub(held)).max(1.0)
    }

    /// Notes that a prompt is on its way to an instance.
    pub(crate) fn send(&mut self, prompt: &Prompt, instance: &mut Beliefs, now: Time) -> Work {
        let held = self.matches.get(instance.seat.0 as usize).copied().unwrap_or_default();
        let uncached = self.uncached(prompt, held);
        let load = instance.uncached + uncached;
        instance.uncached = load;
        self.index.expect(&prompt.blocks, instance.seat);
        let blocks = Arc::clone(&prompt.blocks);
        Work { blocks, bytes: prompt.bytes, sent: now, uncached, load, held, begun: false }
    }

    /// The first token has come: the prompt is in the instance's cache, and how long it took tells the instance's pace.
    pub(crate) fn begin(&mut self, work: &mut Work, instance: &mut Beliefs, now: Time) {
        if std::mem::replace(&mut work.begun, true) {
            return;
        }
        instance.uncached = (instance.uncached - work.uncached).max(0.0);
        self.index.confirm(&work.blocks, instance.seat);
        let milliseconds = now.since(work.sent).as_secs_f64() * 1e3;
        instance.pace.observe(work.load, milliseconds);
        self.pace.observe(work.load, milliseconds);
    }

    /// Takes in what the engine reported of a request.
    pub(crate) fn learn(&mut self, work: &Work, instance: &mut Beliefs, report: &Report) {
        if let Some(tokens) = report.prompt_tokens.filter(|_| work.bytes >= u64::from(BLOCK_BYTES)) {
            // A prompt counts by its length: short ones are mostly template.
            let weight = NEW * (work.bytes as f64 / 4096.0).min(1.0);
            self.tokens_per_byte += weight * (tokens as f64 / work.bytes as f64 - self.tokens_per_byte);
        }
        if let Some(tokens) = report.output_tokens {
            self.output_tokens += NEW * (tokens as f64 - self.output_tokens);
        }
        if let (Some(cached), Some(prompt)) = (report.cached_tokens, report.prompt_tokens) {
            let cached_share = cached as f64 / (prompt as f64).max(1.0);
            let believed = f64::from(work.held.confirmed * BLOCK_BYTES) / (work.bytes as f64).max(1.0);
            instance.capacity.compare(&mut self.index, instance.seat, work.held, believed, cached_share);
        }
    }

    /// The request is over; without a first token its prompt is not there.
    pub(crate) fn end(&mut self, work: &Work, instance: &mut Beliefs) {
        if !work.begun {
            instance.uncached = (instance.uncached - work.uncached).max(0.0);
            self.index.withdraw(&work.blocks, instance.seat);
        }
    }
}
