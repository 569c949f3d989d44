//! A histogram of durations that is observed without a lock.

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
