//! How values are distributed, to within 2.5 percent, in a few bytes: counts in buckets whose bounds grow
//! geometrically (after DDSketch, Masson et al., VLDB 2019).

/// Each bucket's upper bound by its lower one. A value is reported as the middle of its bucket, which is at most
/// (γ − 1) / (γ + 1), 2.5 %, away.
const GAMMA: f64 = 1.05;

/// CloudWatch takes magnitudes up to 2³⁶⁰, which is bucket 5,115; smaller ones than 2⁻³⁶⁰ count as 0.
const BUCKETS: i16 = 5_200;

/// Counts of values by bucket.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Sketch {
    /// Bucket and count, ascending; bucket 0 holds zeros, negative buckets negative values. Half a billionth of a
    /// count is lost per count; quantiles need no more.
    counts: Vec<(i16, f32)>,
}

impl Sketch {
    /// Counts a value that occurred `count` times.
    pub(crate) fn add(&mut self, value: f64, count: f64) {
        self.add_to(bucket(value), count as f32);
    }

    /// Counts all that the other one has.
    pub(crate) fn merge(&mut self, other: &Sketch) {
        for (bucket, count) in &other.counts {
            self.add_to(*bucket, *count);
        }
    }

    /// The value below or at which this share of the values lies; `share` is 0 to 1. `None` when there are none.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let total: f64 = self.counts.iter().map(|(_, count)| f64::from(*count)).sum();
        let mut left = share * total;
        let reached = self.counts.iter().find(|(_, count)| {
            left -= f64::from(*count);
            left <= 0.0
        });
        reached.or(self.counts.last()).map(|(bucket, _)| middle(*bucket))
    }

    /// How many buckets hold something.
    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    fn add_to(&mut self, bucket: i16, count: f32) {
        match self.counts.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(place) => self.counts[place].1 += count,
            Err(place) => self.counts.insert(place, (bucket, count)),
        }
    }
}

fn bucket(value: f64) -> i16 {
    let magnitude = (value.abs().ln() / GAMMA.ln()).ceil();
    if magnitude.is_nan() || magnitude < -f64::from(BUCKETS) {
        return 0;
    }
    // In range: the magnitude lies between the bounds, and a cast saturates besides.
    let bucket = magnitude.min(f64::from(BUCKETS)) as i16 + BUCKETS + 1;
    if value < 0.0 { -bucket } else { bucket }
}

fn middle(bucket: i16) -> f64 {
    if bucket == 0 {
        return 0.0;
    }
    let upper = GAMMA.powi(i32::from(bucket.abs()) - i32::from(BUCKETS) - 1);
    (upper * 2.0 / (1.0 + GAMMA)).copysign(f64::from(bucket))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(values: impl IntoIterator<Item = f64>) -> Sketch {
        let mut sketch = Sketch::default();
        values.into_iter().for_each(|value| sketch.add(value, 1.0));
        sketch
    }

    #[test]
    fn quantiles_are_within_two_and_a_half_percent() {
        let sketch = sketch((1..=10_000).map(f64::from));
        for share in [0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let (found, exact) = (sketch.quantile(share).expect("values"), share * 10_000.0);
            assert!((found / exact - 1.0).abs() <= 0.0251, "p{}: {found} instead of {exact}", share * 100.0);
        }
    }

    #[test]
    fn order_holds_over_zero_and_extremes() {
        let extreme = 2f64.powi(360);
        let sketch = sketch([extreme, -extreme, 0.0, 1e-300, -5.0, 5.0]);
        let found: Vec<f64> = (1..=6).filter_map(|n| sketch.quantile(f64::from(n) / 6.0)).collect();
        assert!(found.is_sorted(), "{found:?}");
        assert_eq!(found[2], 0.0);
        assert!((found[5] / extreme - 1.0).abs() <= 0.0251 && (found[0] / -extreme - 1.0).abs() <= 0.0251);
    }

    #[test]
    fn merging_counts_both() {
        let mut both = sketch([1.0, 2.0]);
        both.merge(&sketch([2.0, 1000.0]));
        assert_eq!(both, sketch([1.0, 2.0, 2.0, 1000.0]));
        assert_eq!(Sketch::default().quantile(0.5), None);
    }
}
