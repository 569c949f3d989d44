//! Intervals by drawing seeds, and within each run parts of its time, with replacement.
//!
//! Two things make a figure vary: another seed, and another stretch of the same run, whose requests depend on their
//! neighbours in time. So seeds are drawn, and for each its run is put together of parts drawn anew (a bootstrap over
//! clusters, and over blocks of time within them; Efron and Tibshirani 1993, chapter 8; Künsch 1989). Strategies share
//! the draws, so that what a seed or an hour does to all of them cancels out of their differences.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::digest::{Digest, Histogram};
use super::means;
use crate::measures::Measures;
use crate::observation::PARTS;

/// How many draws: enough for bounds that hardly move with the generator's seed.
const DRAWS: usize = 400;

/// One draw: seeds, and how often each part of the seed's run happened.
pub(super) type Pick = Vec<(usize, [u8; PARTS])>;

/// The draws for this many seeds; none for none.
pub(super) fn picks(seeds: usize) -> Vec<Pick> {
    let mut rng = Pcg64::seed_from_u64(95);
    let run = |rng: &mut Pcg64| {
        let mut weights = [0; PARTS];
        (0..PARTS).for_each(|_| weights[rng.random_range(0..PARTS)] += 1);
        (rng.random_range(0..seeds), weights)
    };
    let draws = if seeds == 0 { 0 } else { DRAWS };
    (0..draws).map(|_| (0..seeds).map(|_| run(&mut rng)).collect()).collect()
}

/// The figures of a strategy in each draw.
pub(super) fn draws(digests: &[Digest], picks: &[Pick]) -> Vec<Measures<f64>> {
    let mut histogram = Histogram::new();
    let mut figures = |pick: &Pick| {
        let runs = pick.iter().map(|(seed, weights)| digests[*seed].weighted(weights, &mut histogram));
        means(&runs.collect::<Vec<_>>())
    };
    picks.iter().map(&mut figures).collect()
}
