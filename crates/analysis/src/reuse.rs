//! How soon blocks come again, in time and in other tokens: the hit rate of a cache of any size, from one pass.
//!
//! A cache that evicts what was used least recently holds a block exactly if the distinct tokens used since its last use,
//! with itself, fit in: its stack distance (Mattson et al. 1970). The distances of a sample of the blocks, chosen by
//! their hashes, tell the curve of all (Waldspurger et al., SHARDS, FAST 2015): the sample halves whenever it outgrows
//! its bound, distances count as many times as much, and uses weigh as many times as much. The error is told by the
//! spread between eight parts of the sample.

mod recency;

use std::collections::HashMap;

use serde::Serialize;

use self::recency::Recency;
use crate::chain::{Block, UNITS_PER_TOKEN};
use crate::entry::Microseconds;
use crate::known::AlreadyHashed;

/// Into how many parts the sample is cut to tell its error.
const PARTS: usize = 8;

/// Half of a 95 % interval from so many parts, in standard errors (Student's t, 7 degrees of freedom).
const STUDENT: f64 = 2.365;

/// Distances are told apart by an eighth of a doubling.
const BINS_PER_DOUBLING: f64 = 8.0;
const BINS: usize = 48 * BINS_PER_DOUBLING as usize;
const TIME_BINS: usize = 56 * BINS_PER_DOUBLING as usize;

/// Of 24 bits of a hash; below the threshold is in the sample.
const WHOLE: u32 = 1 << 24;

/// Watches which blocks are used.
#[derive(Debug)]
pub(crate) struct Reuse {
    /// The sampled blocks that were used: where in the order of last uses, and when.
    blocks: HashMap<u64, LastUse, AlreadyHashed>,
    most_blocks: usize,
    threshold: u32,
    recency: Recency,
    parts: Vec<Part>,
    /// By the bin of the microseconds since the last use.
    times: Vec<f64>,
    pending: Vec<(u64, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct LastUse {
    position: u32,
    at: Option<Microseconds>,
    units: u32,
}

/// Sums over a part of the sample, each use weighed by how many it stands for.
#[derive(Clone, Debug)]
struct Part {
    used: f64,
    /// By the bin of the distance.
    reused: Vec<f64>,
}

impl Reuse {
    /// Keeps track of so many blocks at most, at some 60 bytes each.
    pub(crate) fn new(most_blocks: usize) -> Reuse {
        Reuse {
            blocks: HashMap::default(),
            most_blocks,
            threshold: WHOLE,
            recency: Recency::new(2 * most_blocks.max(1)),
            parts: vec![Part { used: 0.0, reused: vec![0.0; BINS] }; PARTS],
            times: vec![0.0; TIME_BINS],
            pending: Vec::new(),
        }
    }

    /// A request uses its blocks, all at once.
    pub(crate) fn take(&mut self, blocks: &[Block], at: Option<Microseconds>) {
        let weight = f64::from(WHOLE) / f64::from(self.threshold);
        // How far away the block before was, if it was known: where an answer stands, it was made right behind that.
        let mut before = None;
        self.pending.clear();
        for block in blocks.iter().filter(|block| is_sampled(block.hash, self.threshold)) {
            let last = self.blocks.get(&block.hash);
            let distance = match last {
                Some(last) => {
                    let units = self.recency.units_since(last.position) + u64::from(last.units);
                    Some(units as f64 / f64::from(UNITS_PER_TOKEN) * weight)
                }
                None => before.filter(|_| block.generated),
            };
            let used = weight * f64::from(block.units);
            let part = &mut self.parts[block.hash as usize % PARTS];
            part.used += used;
            if let Some(distance) = distance {
                part.reused[bin(distance)] += used;
                if let Some((now, last)) = at.zip(last.and_then(|last| last.at)) {
                    let microseconds = now.saturating_sub(last).max(1) as f64;
                    let bin = (microseconds.log2() * BINS_PER_DOUBLING) as usize;
                    self.times[bin.min(TIME_BINS - 1)] += used;
                }
            }
            before = distance;
            self.pending.push((block.hash, block.units));
        }
        // The end first, so that of one prompt the beginning counts as used last: engines evict in this order.
        while let Some((hash, units)) = self.pending.pop() {
            self.touch(hash, units, at);
        }
        while self.blocks.len() > self.most_blocks {
            self.threshold /= 2;
            let threshold = self.threshold;
            self.blocks.retain(|hash, _| is_sampled(*hash, threshold));
            self.renumber();
        }
    }

    fn touch(&mut self, hash: u64, units: u32, at: Option<Microseconds>) {
        if self.recency.is_full() {
            self.renumber();
        }
        if let Some(last) = self.blocks.get(&hash) {
            self.recency.remove(last.position, last.units);
        }
        let position = self.recency.push(units);
        self.blocks.insert(hash, LastUse { position, at, units });
    }

    /// Gives the blocks that are left the lowest positions, in their order.
    fn renumber(&mut self) {
        let mut order: Vec<&mut LastUse> = self.blocks.values_mut().collect();
        order.sort_unstable_by_key(|last| last.position);
        self.recency.clear();
        for last in order {
            last.position = self.recency.push(last.units);
        }
    }

    /// The hit rate of a cache of so many tokens that starts empty.
    pub(crate) fn hit_rate(&self, cache_tokens: f64) -> Estimate {
        let within = if cache_tokens.is_finite() { whole_bins(cache_tokens) } else { BINS };
        let of = |part: &Part| (part.reused[..within].iter().sum::<f64>(), part.used);
        let sums: Vec<(f64, f64)> = self.parts.iter().map(of).collect();
        let (reused, used) = sums.iter().fold((0.0, 0.0), |(reused, used), part| (reused + part.0, used + part.1));
        let rate = if used > 0.0 { reused / used } else { 0.0 };
        let error = if self.is_exact() { 0.0 } else { half_interval(&sums, rate) };
        Estimate { value: rate, error }
    }

    /// The hit rate for caches from the first that holds anything to the first that holds all. Sizes are multiplied by
    /// `factor`.
    pub(crate) fn curve(&self, factor: f64) -> Vec<CurvePoint> {
        let used = |bin: &usize| self.parts.iter().any(|part| part.reused[*bin] > 0.0);
        let bins = || (0..BINS).filter(used);
        let (Some(first), Some(last)) = (bins().next(), bins().next_back()) else { return Vec::new() };
        (first.saturating_sub(1)..=last + 1)
            .map(|bin| {
                let cache_tokens = (bin as f64 / BINS_PER_DOUBLING).exp2();
                CurvePoint { cache_tokens: cache_tokens * factor, hit_rate: self.hit_rate(cache_tokens) }
            })
            .collect()
    }

    /// Time since the last use of half and of nine tenths of the tokens that came again, in seconds; `None` without times.
    pub(crate) fn seconds(&self) -> Option<ReuseSeconds> {
        let total: f64 = self.times.iter().sum();
        let at = |share: f64| {
            let mut sum = 0.0;
            let bin = self.times.iter().position(|weight| {
                sum += weight;
                sum >= share * total
            })?;
            Some(((bin as f64 + 0.5) / BINS_PER_DOUBLING).exp2() / 1e6)
        };
        if total <= 0.0 {
            return None;
        }
        Some(ReuseSeconds { p50: at(0.5)?, p90: at(0.9)? })
    }

    /// Every block was kept track of.
    pub(crate) fn is_exact(&self) -> bool {
        self.threshold == WHOLE
    }

    /// Which share of the blocks was, 0 to 1.
    pub(crate) fn sampled_share(&self) -> f64 {
        f64::from(self.threshold) / f64::from(WHOLE)
    }
}

/// A share with what is known of its error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// 0 to 1.
    pub value: f64,
    /// Half the width of the 95 % interval; 0 where all was counted.
    pub error: f64,
}

/// What a cache of a size would hit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The cache's size.
    pub cache_tokens: f64,
    /// Of the prompts' tokens.
    pub hit_rate: Estimate,
}

/// How long ago what comes again was used last, in seconds, to some 5 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReuseSeconds {
    /// For half of the tokens.
    pub p50: f64,
    /// For nine tenths.
    pub p90: f64,
}

fn is_sampled(hash: u64, threshold: u32) -> bool {
    ((hash >> 40) as u32) < threshold
}

/// The bin of a distance in tokens: its upper bound is the first that is not below.
fn bin(tokens: f64) -> usize {
    ((tokens.max(1.0).log2() * BINS_PER_DOUBLING).ceil() as usize).min(BINS - 1)
}

/// How many bins lie within so many tokens.
fn whole_bins(tokens: f64) -> usize {
    if tokens < 1.0 { 0 } else { ((tokens.log2() * BINS_PER_DOUBLING + 1e-6).floor() as usize + 1).min(BINS) }
}

/// Of the ratio of the sums, from the spread of the parts around it.
fn half_interval(parts: &[(f64, f64)], rate: f64) -> f64 {
    let used: f64 = parts.iter().map(|part| part.1).sum();
    let count = parts.len() as f64;
    let residuals: f64 = parts.iter().map(|(reused, used)| (reused - rate * used).powi(2)).sum();
    if used > 0.0 { STUDENT * (residuals * count / (count - 1.0)).sqrt() / used } else { 0.0 }
}

#[cfg(test)]
mod tests;
