//! What a run saw, in numbers only: small enough to keep a million requests.

use std::ops::Range;

/// One request of a run. Times are nanoseconds since the run's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// When it was sent.
    pub send: u64,
    /// From its sending to its first token; `None` if none came.
    pub ttft: Option<u64>,
    /// When its last token came, or when it failed.
    pub end: u64,
    /// Tokens of its prompt.
    pub prompt_tokens: u32,
    /// How many of these the engine found in its cache; `None` if it does not say.
    pub cached_tokens: Option<u32>,
    /// Tokens of the answer.
    pub output_tokens: u32,
    /// Who served it, as an index into the run's instances; `None` if nobody did.
    pub instance: Option<u32>,
    /// It was sent elsewhere because its home was full.
    pub spilled: bool,
    /// It was not answered in full.
    pub failed: bool,
}

/// What the fleet did in one part of the measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetPart {
    /// Cached blocks that were overwritten; `None` if engines do not say.
    pub evicted_blocks: Option<u64>,
    /// Time that instances were there and paid for, summed over them, in nanoseconds.
    pub instance_time: u64,
    /// The same, each multiplied by its accelerators; `None` if nobody knows how many there are.
    pub accelerator_time: Option<u64>,
    /// The part of it that accelerators spent in steps; `None` if engines do not say.
    pub busy_accelerator_time: Option<u64>,
}

/// A run of one strategy with one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The measured time: requests sent in it are measured; those before only warm the caches.
    pub window: Range<u64>,
    /// All requests, also those outside the window, in the order of their sending.
    pub observations: Vec<Observation>,
    /// The measured time in [`PARTS`] equal parts.
    pub parts: Vec<FleetPart>,
    /// Names of all instances that were ever there.
    pub instances: Vec<String>,
}

/// Into how many parts of equal length the measured time is cut, to see how figures vary within a run.
pub const PARTS: usize = 20;

impl Run {
    /// The part of the measured time in which a point lies; `None` outside of it.
    pub(crate) fn part(&self, time: u64) -> Option<usize> {
        let Range { start, end } = self.window;
        let place = time.checked_sub(start).filter(|_| time < end)?;
        Some((u128::from(place) * PARTS as u128 / u128::from(end - start)) as usize)
    }

    /// When a part ends.
    pub fn part_end(window: &Range<u64>, part: usize) -> u64 {
        window.start + ((u128::from(window.end - window.start) * (part as u128 + 1)) / PARTS as u128) as u64
    }
}
