//! Percentiles of measured values.

/// The `percent`-th percentile of values that are sorted in ascending order, by linear interpolation between the two
/// closest ranks: rank `percent / 100 × (count − 1)`, counted from 0. That is definition 7 of Hyndman and Fan (1996),
/// the default of NumPy, and what `vllm bench serve` prints.
///
/// `None` for no values; `percent` is brought into 0 to 100.
pub fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = percent.clamp(0.0, 100.0) / 100.0 * last as f64;
    let below = rank as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (rank - below as f64))
}

/// The arithmetic mean; `None` for no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::{mean, percentile};

    #[test]
    fn interpolates_between_the_closest_ranks() {
        let values = [10.0, 20.0, 30.0, 40.0];
        assert_eq!(percentile(&values, 0.0), Some(10.0));
        assert_eq!(percentile(&values, 50.0), Some(25.0));
        assert_eq!(percentile(&values, 100.0), Some(40.0));
        // numpy.percentile([10, 20, 30, 40], 90)
        assert!((percentile(&values, 90.0).unwrap() - 37.0).abs() < 1e-9);
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        // numpy.percentile(range(1, 101), 99)
        assert!((percentile(&hundred, 99.0).unwrap() - 99.01).abs() < 1e-9);
    }

    #[test]
    fn one_value_is_every_percentile_and_none_has_none() {
        assert_eq!(percentile(&[7.0], 99.0), Some(7.0));
        assert_eq!(percentile(&[], 50.0), None);
        assert_eq!((mean(&[]), mean(&[1.0, 2.0])), (None, Some(1.5)));
    }
}
