//! Latencies in buckets fine enough for percentiles, counted without a lock.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Each bucket's upper bound by its lower one: the middle of a bucket is at most 2.5 % from what is in it.
const GAMMA: f64 = 1.05;

/// From a microsecond to two hours; what is beyond counts in the first and the last.
const BUCKETS: usize = 468;

/// Counts of latencies.
#[derive(Debug)]
pub(super) struct Latencies {
    /// They may begin anew after four billion: only differences are read.
    buckets: Box<[AtomicU32]>,
    sum_microseconds: AtomicU64,
}

/// Counts of latencies at one moment, or those of a span.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LatencyFigures {
    buckets: Vec<u32>,
    sum_microseconds: u64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        let buckets = (0..BUCKETS).map(|_| AtomicU32::new(0)).collect();
        Latencies { buckets, sum_microseconds: AtomicU64::new(0) }
    }
}

impl Latencies {
    pub(super) fn observe(&self, latency: Duration) {
        let microseconds = latency.as_secs_f64() * 1e6;
        // In range: a cast saturates, below at 0.
        let bucket = (microseconds.ln() / GAMMA.ln()).ceil() as usize;
        self.buckets[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        self.sum_microseconds.fetch_add(microseconds as u64, Ordering::Relaxed);
    }

    pub(super) fn figures(&self) -> LatencyFigures {
        LatencyFigures {
            buckets: self.buckets.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
            sum_microseconds: self.sum_microseconds.load(Ordering::Relaxed),
        }
    }
}

impl LatencyFigures {
    /// What was counted since `before`.
    pub(super) fn since(&self, before: &LatencyFigures) -> LatencyFigures {
        let before_of = |bucket: usize| before.buckets.get(bucket).copied().unwrap_or(0);
        let buckets = self.buckets.iter().enumerate();
        LatencyFigures {
            buckets: buckets.map(|(bucket, count)| count.wrapping_sub(before_of(bucket))).collect(),
            sum_microseconds: self.sum_microseconds.saturating_sub(before.sum_microseconds),
        }
    }

    /// Adds counts of the same span.
    pub(super) fn add(&mut self, other: &LatencyFigures) {
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (count, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *count = count.saturating_add(*more);
        }
        self.sum_microseconds += other.sum_microseconds;
    }

    /// How many latencies there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().copied().map(u64::from).sum()
    }

    /// Their sum in microseconds, exactly.
    pub fn sum_microseconds(&self) -> u64 {
        self.sum_microseconds
    }

    /// Latencies in microseconds to within 2.5 %, shortest first, and how often each occurred.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u32)> {
        let held = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        held.map(|(bucket, count)| (GAMMA.powi(bucket as i32) * 2.0 / (1.0 + GAMMA), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_told_to_within_two_and_a_half_percent() {
        for microseconds in [1, 7, 150, 20_000, 3_000_000, 3_600_000_000_u64] {
            let latencies = Latencies::default();
            latencies.observe(Duration::from_micros(microseconds));
            let figures = latencies.figures();
            let told: Vec<(f64, u32)> = figures.buckets().collect();
            let exact = microseconds as f64;
            assert!(told.len() == 1 && (told[0].0 / exact - 1.0).abs() <= 0.0251, "{microseconds}: {told:?}");
            assert_eq!(figures.sum_microseconds(), microseconds);
        }
    }

    #[test]
    fn extremes_are_counted() {
        let latencies = Latencies::default();
        latencies.observe(Duration::ZERO);
        latencies.observe(Duration::from_secs(1_000_000));
        assert_eq!(latencies.figures().count(), 2);
    }
}
