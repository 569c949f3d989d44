//! A histogram of durations that is observed without a lock, and its counts at a moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Counts durations in buckets. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct DurationHistogram {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Upper bounds in seconds, ascending, without the last bucket's, which is infinite.
    bounds: &'static [f64],
    /// One more than bounds.
    counts: Box<[AtomicU64]>,
    /// 584 years of waiting fit.
    sum_nanoseconds: AtomicU64,
}

impl DurationHistogram {
    pub(crate) fn new(bounds: &'static [f64]) -> DurationHistogram {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        DurationHistogram { shared: Arc::new(Shared { bounds, counts, sum_nanoseconds: AtomicU64::new(0) }) }
    }

    pub(crate) fn observe(&self, duration: Duration) {
        let Shared { bounds, counts, sum_nanoseconds } = &*self.shared;
        let seconds = duration.as_secs_f64();
        let bucket = bounds.partition_point(|bound| *bound < seconds);
        counts[bucket].fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        sum_nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The counts now.
    pub(crate) fn figures(&self) -> HistogramFigures {
        let Shared { bounds, counts, .. } = &*self.shared;
        let counts = counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        HistogramFigures { bounds, counts }
    }
}

/// Counts of durations in buckets, at one moment or those of a span. Empty ones have no buckets.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HistogramFigures {
    bounds: &'static [f64],
    counts: Vec<u64>,
}

impl HistogramFigures {
    /// How many durations there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Upper bounds in seconds, infinite last, and how many durations lie between each and the one before.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        self.bounds.iter().copied().chain([f64::INFINITY]).zip(self.counts.iter().copied())
    }

    /// What was counted since `before`; counts that began anew meanwhile count from their new beginning.
    pub fn since(&self, before: &HistogramFigures) -> HistogramFigures {
        if before.counts.len() != self.counts.len() || self.count() < before.count() {
            return self.clone();
        }
        let counts = self.counts.iter().zip(&before.counts).map(|(now, before)| now.saturating_sub(*before)).collect();
        HistogramFigures { bounds: self.bounds, counts }
    }

    /// Adds counts in the same buckets.
    pub fn add(&mut self, other: &HistogramFigures) {
        if self.counts.is_empty() {
            self.clone_from(other);
            return;
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// The duration in seconds that this share (0 to 1) of the durations does not exceed, as Prometheus'
    /// `histogram_quantile` reckons it: evenly spread within a bucket, and the highest bound for what lies beyond it.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = share * total as f64;
        let (mut below, mut lower) = (0.0, 0.0);
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            let within = *count as f64;
            if below + within >= rank && within > 0.0 {
                return Some(lower + (bound - lower) * (rank - below) / within);
            }
            (below, lower) = (below + within, *bound);
        }
        Some(lower)
    }
}

impl EncodeMetric for DurationHistogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Shared { bounds, counts, sum_nanoseconds } = &*self.shared;
        let sum = Duration::from_nanos(sum_nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
        let bounds = bounds.iter().copied().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts.iter().map(|count| count.load(Ordering::Relaxed))).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

impl TypedMetric for DurationHistogram {
    const TYPE: MetricType = MetricType::Histogram;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_spread_evenly_within_a_bucket_as_prometheus_does() {
        let histogram = DurationHistogram::new(&[0.1, 0.2, 0.4]);
        assert_eq!(histogram.figures().quantile(0.5), None);
        for milliseconds in [50, 50, 150, 150, 300, 300, 300, 300] {
            histogram.observe(Duration::from_millis(milliseconds));
        }
        let figures = histogram.figures();
        let near = |share, expected: f64| (figures.quantile(share).unwrap() - expected).abs() < 1e-9;
        assert!(near(0.25, 0.1) && near(0.5, 0.2) && near(0.75, 0.3) && near(1.0, 0.4));
        histogram.observe(Duration::from_secs(9));
        assert_eq!(histogram.figures().quantile(1.0), Some(0.4));
    }

    #[test]
    fn a_span_holds_what_came_since() {
        let histogram = DurationHistogram::new(&[0.1, 0.2]);
        histogram.observe(Duration::from_millis(50));
        let before = histogram.figures();
        histogram.observe(Duration::from_millis(150));
        let span = histogram.figures().since(&before);
        assert_eq!(span.buckets().map(|(_, count)| count).collect::<Vec<_>>(), [0, 1, 0]);
        let anew = DurationHistogram::new(&[0.1, 0.2]);
        assert_eq!(anew.figures().since(&before).count(), 0);
        let mut sum = HistogramFigures::default();
        sum.add(&span);
        sum.add(&span);
        assert_eq!(sum.count(), 2);
    }
}
