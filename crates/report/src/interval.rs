//! 95 % confidence intervals by resampling users.
//!
//! Requests of one user are not independent: they share documents, and wait for one another. So whole users are drawn
//! with replacement, the figures are computed from what they sent, and the 2.5th and 97.5th percentile over many such
//! draws bound the interval (percentile bootstrap over clusters; Efron and Tibshirani 1993, chapters 8 and 13).

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::RequestRecord;
use crate::measures::{Frame, Measures, bounds};

/// How many times users are drawn: enough for bounds that hardly move with the seed.
const DRAWS: usize = 400;
/// Fewer users than this say too little about how users differ.
const FEWEST_USERS: usize = 5;

/// The intervals of a run's figures; `None` when too few users took part. Equal records give equal intervals.
pub(crate) fn intervals(records: &[RequestRecord], frame: &Frame) -> Option<Measures<[f64; 2]>> {
    let mut by_user: BTreeMap<u32, Vec<&RequestRecord>> = BTreeMap::new();
    for record in records {
        by_user.entry(record.user).or_default().push(record);
    }
    let users: Vec<Vec<&RequestRecord>> = by_user.into_values().collect();
    if users.len() < FEWEST_USERS {
        return None;
    }
    let mut rng = Pcg64::seed_from_u64(95);
    let draws: Vec<Measures<f64>> = (0..DRAWS)
        .map(|_| {
            let drawn: Vec<&Vec<&RequestRecord>> =
                (0..users.len()).map(|_| &users[rng.random_range(0..users.len())]).collect();
            frame.measure(drawn.into_iter().flatten().copied())
        })
        .collect();
    Some(bounds(&draws))
}
