//! When users act: how many there are by default, how long they think, when they first appear.

use std::time::Duration;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1};

use crate::{Piece, PieceId};

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

/// Numbers the pieces of one user so that no other user's piece has the same id.
#[derive(Debug)]
pub(crate) struct PieceMaker {
    next: u64,
}

impl PieceMaker {
    pub(crate) fn for_user(user: u32) -> PieceMaker {
        PieceMaker { next: u64::from(user) << 32 }
    }

    pub(crate) fn piece(&mut self, tokens: u32) -> Piece {
        let id = PieceId(self.next);
        self.next += 1;
        Piece { id, tokens }
    }
}
