//! How late the wall clock served the engine's steps: the figure that tells whether a measurement can be trusted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Lateness of step ends in wall-clock time, since the start or since the last reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LagReport {
    /// Steps measured.
    pub steps: u64,
    /// Lateness of the last step.
    pub current: Duration,
    /// Mean over all steps.
    pub mean: Duration,
    /// 99th percentile, at most 13 % above the true value.
    pub p99: Duration,
    /// The latest step of all.
    pub max: Duration,
}

impl LagReport {
    /// Whether 99 of 100 steps ended within `bound` of their deadline.
    pub fn is_within(&self, bound: Duration) -> bool {
        self.p99 <= bound
    }
}

/// Eight buckets for each doubling of nanoseconds: relative width 1/8.
const BUCKETS_PER_OCTAVE: u64 = 8;
const BUCKETS: usize = 64 * BUCKETS_PER_OCTAVE as usize;

/// Written by the emulator's thread, read by any other.
#[derive(Debug)]
pub(crate) struct LagRecorder {
    buckets: Box<[AtomicU64]>,
    steps: AtomicU64,
    total_nanos: AtomicU64,
    current_nanos: AtomicU64,
    max_nanos: AtomicU64,
}

impl LagRecorder {
    pub(crate) fn new() -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            steps: AtomicU64::new(0),
            total_nanos: AtomicU64::new(0),
            current_nanos: AtomicU64::new(0),
            max_nanos: AtomicU64::new(0),
        }
    }

    pub(crate) fn record(&self, lag: Duration) {
        let nanos = u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(nanos)].fetch_add(1, Relaxed);
        self.steps.fetch_add(1, Relaxed);
        self.total_nanos.fetch_add(nanos, Relaxed);
        self.current_nanos.store(nanos, Relaxed);
        self.max_nanos.fetch_max(nanos, Relaxed);
    }

    pub(crate) fn report(&self) -> LagReport {
        let steps = self.steps.load(Relaxed);
        let max = self.max_nanos.load(Relaxed);
        LagReport {
            steps,
            current: Duration::from_nanos(self.current_nanos.load(Relaxed)),
            mean: Duration::from_nanos(self.total_nanos.load(Relaxed).checked_div(steps).unwrap_or(0)),
            p99: Duration::from_nanos(self.percentile(0.99).min(max)),
            max: Duration::from_nanos(max),
        }
    }

    /// Forgets everything, so that a measurement counts its own steps only.
    pub(crate) fn reset(&self) {
        for cell in self.buckets.iter().chain([&self.steps, &self.total_nanos, &self.current_nanos, &self.max_nanos]) {
            cell.store(0, Relaxed);
        }
    }

    /// Upper edge of the bucket in which the percentile lies; zero when nothing was recorded.
    fn percentile(&self, share: f64) -> u64 {
        let counts: Vec<u64> = self.buckets.iter().map(|bucket| bucket.load(Relaxed)).collect();
        let wanted = (counts.iter().sum::<u64>() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (index, count) in counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen >= wanted {
                return upper_edge(index);
            }
        }
        0
    }
}

/// Below 8 ns each value has its own bucket; above, the octave and the next three bits choose it.
fn bucket_of(nanos: u64) -> usize {
    if nanos < BUCKETS_PER_OCTAVE {
        return nanos as usize;
    }
    let octave = u64::from(63 - nanos.leading_zeros());
    let within = (nanos >> (octave - 3)) & (BUCKETS_PER_OCTAVE - 1);
    ((octave - 2) * BUCKETS_PER_OCTAVE + within) as usize
}

fn upper_edge(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < BUCKETS_PER_OCTAVE {
        return bucket;
    }
    let (octave, within) = (bucket / BUCKETS_PER_OCTAVE + 2, bucket % BUCKETS_PER_OCTAVE);
    let width = 1u64 << (octave - 3);
    (BUCKETS_PER_OCTAVE + within) * width + (width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_edges_rise() {
        for nanos in (0..2_000).chain([1 << 20, (1 << 20) + 1, u64::MAX / 3, u64::MAX]) {
            let bucket = bucket_of(nanos);
            assert!(upper_edge(bucket) >= nanos, "{nanos}");
            assert!(bucket == 0 || upper_edge(bucket - 1) < nanos, "{nanos}");
        }
    }

    #[test]
    fn report_tells_mean_p99_and_max() {
        let lag = LagRecorder::new();
        for _ in 0..99 {
            lag.record(Duration::from_micros(100));
        }
        lag.record(Duration::from_millis(50));
        let report = lag.report();
        assert_eq!(report.steps, 100);
        assert_eq!(report.max, Duration::from_millis(50));
        assert_eq!(report.current, Duration::from_millis(50));
        assert_eq!(report.mean, Duration::from_micros(599));
        assert!(report.p99 >= Duration::from_micros(100) && report.p99 <= Duration::from_micros(113), "{report:?}");
        assert!(report.is_within(Duration::from_millis(1)));
    }

    #[test]
    fn reset_starts_over() {
        let lag = LagRecorder::new();
        lag.record(Duration::from_millis(5));
        lag.reset();
        assert_eq!(lag.report(), LagReport::default());
    }
}
