//! Who is chosen how often, by Zipf's law.

use rand::Rng;
use rand_distr::{Distribution, Zipf};

/// A rank from 1 to `ranks`, the k-th with a probability proportional to k^-`exponent`. The figures have been checked:
/// at least one rank, and an exponent from 0 up; else it is always the first.
pub(crate) fn rank(rng: &mut impl Rng, ranks: u32, exponent: f64) -> u32 {
    Zipf::new(f64::from(ranks), exponent).map_or(1, |law| law.sample(rng) as u32)
}
