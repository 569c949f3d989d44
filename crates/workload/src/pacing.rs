//! When users act: how many there are by default, how long they think, when they first appear.

use std::time::Duration;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1};

/// How many closed-loop users keep `instances` engines as busy as in AWS's long-context measurement: 46 for 7
/// instances, which is 3 to 4 requests in flight for each with 2 s of think time.
pub fn users_for(instances: u32) -> u32 {
    instances.saturating_mul(46).div_ceil(7)
}

/// A think time: exponential, as of people who act independently.
pub(crate) fn think(rng: &mut impl Rng, mean: Duration) -> Duration {
    let factor: f64 = Exp1.sample(rng);
    mean.mul_f64(factor)
}

/// When a user first appears: spread over two and a half think times, since nobody's users all arrive at once.
pub(crate) fn first_appearance(rng: &mut impl Rng, mean: Duration) -> Duration {
    mean.mul_f64(2.5 * rng.random::<f64>())
}
