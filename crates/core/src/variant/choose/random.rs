//! `RANDOM`: any instance, by weight.

use rand::Rng;

use super::{Open, Pick};
use crate::Reason;

pub(super) fn pick<T, R: Rng>(open: &Open<'_, T>, rng: &mut R) -> Option<Pick> {
    let total: f64 = open.iter().map(|(_, instance)| instance.weight.get()).sum();
    let unit = (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
    let mut left = unit * total;
    let mut last = None;
    for (candidate, instance) in open.iter() {
        last = Some(candidate);
        left -= instance.weight.get();
        if left < 0.0 {
            break;
        }
    }
    // Rounding may leave a crumb after the last one: it is the last one's.
    last.map(|candidate| Pick::new(candidate, Reason::Random))
}
