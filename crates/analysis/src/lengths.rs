//! The distribution of lengths in tokens, in a few kilobytes.

use serde::Serialize;

use crate::chain::tokens;

/// Lengths are told apart by a sixteenth of a doubling.
const BINS_PER_DOUBLING: f64 = 16.0;
const BINS: usize = 32 * BINS_PER_DOUBLING as usize;

/// Counts lengths.
#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    /// Below one token.
    none: u64,
    bins: Vec<u64>,
    sum: f64,
    longest: f64,
}

impl Lengths {
    pub(crate) fn new() -> Lengths {
        Lengths { none: 0, bins: vec![0; BINS], sum: 0.0, longest: 0.0 }
    }

    pub(crate) fn add(&mut self, units: u64) {
        let length = tokens(units);
        self.sum += length;
        self.longest = self.longest.max(length);
        match length {
            length if length < 1.0 => self.none += 1,
            length => self.bins[((length.log2() * BINS_PER_DOUBLING) as usize).min(BINS - 1)] += 1,
        }
    }

    /// The distribution, with all lengths multiplied by `factor`.
    pub(crate) fn distribution(&self, factor: f64) -> Distribution {
        let count = self.none + self.bins.iter().sum::<u64>();
        let at = |share: f64| {
            let mut sum = self.none as f64;
            if sum >= share * count as f64 {
                return 0.0;
            }
            let bin = self.bins.iter().position(|bin| {
                sum += *bin as f64;
                sum >= share * count as f64
            });
            // "Up to" holds for all of a bin: it is told by its upper end, and never beyond the longest.
            bin.map_or(0.0, |bin| ((bin + 1) as f64 / BINS_PER_DOUBLING).exp2().min(self.longest) * factor)
        };
        Distribution {
            none: self.none as f64 / count.max(1) as f64,
            mean: self.sum * factor / count.max(1) as f64,
            p10: at(0.1),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p99: at(0.99),
        }
    }
}

/// A distribution of lengths, in tokens, rounded up by up to 5 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// The share that has not even one.
    pub none: f64,
    /// The mean.
    pub mean: f64,
    /// A tenth is not longer.
    pub p10: f64,
    /// A quarter is not longer.
    pub p25: f64,
    /// Half is not longer.
    pub p50: f64,
    /// Three quarters are not longer.
    pub p75: f64,
    /// Nine tenths are not longer.
    pub p90: f64,
    /// All but a hundredth are not longer.
    pub p99: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::units;

    #[test]
    fn percentiles_are_right_to_a_few_percent() {
        let mut lengths = Lengths::new();
        (1..=1_000).for_each(|tokens| lengths.add(u64::from(units(tokens))));
        (0..250).for_each(|_| lengths.add(0));
        let found = lengths.distribution(2.0);
        assert_eq!((found.none, found.p10), (0.2, 0.0));
        for (value, expected) in [(found.p50, 750.0), (found.p90, 1_750.0), (found.mean, 800.8)] {
            assert!((value / expected - 1.0).abs() < 0.05, "{value}, expected {expected}");
        }
    }

    #[test]
    fn what_is_said_to_be_up_to_a_length_is() {
        let mut lengths = Lengths::new();
        (0..100).for_each(|_| lengths.add(u64::from(units(1_619))));
        let found = lengths.distribution(1.0);
        assert_eq!((found.p10, found.p99), (1_619.0, 1_619.0));
        (1_620..=1_700).for_each(|tokens| lengths.add(u64::from(units(tokens))));
        assert!(lengths.distribution(1.0).p50 >= 1_619.0);
    }
}
