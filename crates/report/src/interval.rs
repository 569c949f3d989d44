//! 95 % confidence intervals by resampling users.
//!
//! Requests of one user are not independent: they share documents, and wait for one another. So whole users are drawn
//! with replacement, the figures are computed from what they sent, and the 2.5th and 97.5th percentile over many such
//! draws bound the interval (percentile bootstrap over clusters; Efron and Tibshirani 1993, chapters 8 and 13).

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::RequestRecord;
use crate::measures::{Frame, Latency, Measures, Share};
use crate::percentile::percentile;

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

/// The interval of every figure over the draws that have it.
fn bounds(draws: &[Measures<f64>]) -> Measures<[f64; 2]> {
    let of = |figure: &dyn Fn(&Measures<f64>) -> Option<f64>| {
        let mut values: Vec<f64> = draws.iter().filter_map(figure).collect();
        values.sort_unstable_by(f64::total_cmp);
        Some([percentile(&values, 2.5)?, percentile(&values, 97.5)?])
    };
    let ttft = |figure: fn(&Latency<f64>) -> f64| of(&|draw| draw.ttft_ms.as_ref().map(figure));
    let share = |figure: fn(&Share<f64>) -> f64| of(&|draw| draw.instance_share.as_ref().map(figure));
    Measures {
        ttft_ms: (|| {
            Some(Latency {
                p50: ttft(|ttft| ttft.p50)?,
                p90: ttft(|ttft| ttft.p90)?,
                p95: ttft(|ttft| ttft.p95)?,
                p99: ttft(|ttft| ttft.p99)?,
                mean: ttft(|ttft| ttft.mean)?,
            })
        })(),
        hit_rate: of(&|draw| draw.hit_rate),
        requests_per_second: of(&|draw| draw.requests_per_second),
        output_tokens_per_second: of(&|draw| draw.output_tokens_per_second),
        spill_rate: of(&|draw| draw.spill_rate),
        instance_share: (|| Some(Share { min: share(|share| share.min)?, max: share(|share| share.max)? }))(),
    }
}
