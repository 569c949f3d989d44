//! Which requests the shadow strategies look at where there are too many for their budget: prompts that begin alike all, or
//! none of them. A sample by time would tear apart what shares a cache, and every strategy would seem to hit less.

use std::time::Duration;

use isotherm_core::{PrefixKey, PrefixLength};
use isotherm_telemetry::Trail;

use super::rival::key;

/// How many characters decide whether prompts begin alike.
const UNIT: u64 = 4_096;

/// The smallest share of beginnings.
const LEAST: f64 = 1.0 / 64.0;

/// After so many seconds with time to spare, twice as many are looked at.
const PATIENCE: u32 = 60;

/// The share of beginnings that is looked at.
#[derive(Debug)]
pub(super) struct Sample {
    share: f64,
    unit: Option<PrefixLength>,
    with_time_to_spare: u32,
}

impl Default for Sample {
    fn default() -> Sample {
        Sample { share: 1.0, unit: PrefixLength::new(UNIT).ok(), with_time_to_spare: 0 }
    }
}

impl Sample {
    /// Of all beginnings, 0 to 1. So large a part of a cache is theirs.
    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// Whether a prompt is looked at.
    pub(super) fn takes(&self, trail: &Trail) -> bool {
        let hash = |key: PrefixKey| (key.as_u128() >> 64) as u64;
        let place = self.unit.and_then(|unit| key(trail, unit)).map_or(0, hash);
        // The bits that choose an instance's place in an order must not choose the sample.
        let place = place.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.share >= 1.0 || (place as f64) < self.share * u64::MAX as f64
    }

    /// In the last second so many requests came, so many of them were looked at, and that took so much of the budget.
    pub(super) fn adjust(&mut self, arrived: usize, taken: usize, spent: Duration, budget: Duration) {
        self.with_time_to_spare = if spent * 3 < budget { self.with_time_to_spare + 1 } else { 0 };
        if spent > budget {
            self.share = (self.share / 2.0).max(LEAST);
        } else if self.with_time_to_spare > PATIENCE || (arrived >= 20 && taken == 0) {
            // Where most prompts begin alike, half of the beginnings may be none of the requests.
            (self.share, self.with_time_to_spare) = ((self.share * 2.0).min(1.0), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::{BlockHasher, HashSeed};

    use super::*;

    const BUDGET: Duration = Duration::from_millis(30);

    fn trail(document: u32, question: u32) -> Trail {
        let mut hasher = BlockHasher::new(HashSeed(1));
        hasher.update(format!("{document:>8} is it. ").repeat(400).as_bytes());
        hasher.update(format!("Question {question}?").as_bytes());
        Trail::new(&hasher.finish().unwrap(), Box::default())
    }

    #[test]
    fn prompts_that_begin_alike_are_all_in_the_sample_or_none_is() {
        let mut sample = Sample::default();
        assert!((0..100).all(|document| sample.takes(&trail(document, 0))));
        (0..2).for_each(|_| sample.adjust(100, 100, 2 * BUDGET, BUDGET));
        assert_eq!(sample.share(), 0.25);
        let taken = (0..400).filter(|document| sample.takes(&trail(*document, 0))).count();
        assert!((70..130).contains(&taken), "{taken}");
        for document in 0..50 {
            let first = sample.takes(&trail(document, 0));
            assert!((1..5).all(|question| sample.takes(&trail(document, question)) == first));
        }
    }

    #[test]
    fn it_grows_again_with_time_to_spare_and_is_never_empty_for_long() {
        let mut sample = Sample::default();
        (0..20).for_each(|_| sample.adjust(100, 100, 2 * BUDGET, BUDGET));
        assert_eq!(sample.share(), LEAST);
        (0..61).for_each(|_| sample.adjust(100, 2, BUDGET / 10, BUDGET));
        assert_eq!(sample.share(), 2.0 * LEAST);
        sample.adjust(100, 0, Duration::ZERO, BUDGET);
        assert_eq!(sample.share(), 4.0 * LEAST);
    }
}
