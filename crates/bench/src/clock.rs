//! Time since a run began, in the engines' time.

use std::time::{Duration, Instant};

/// Reads the wall clock and converts between its time and the engines'.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// When the run began.
    pub(crate) start: Instant,
    speed: f64,
}

impl Clock {
    /// Starts now.
    pub(crate) fn start(speed: f64) -> Clock {
        Clock { start: Instant::now(), speed }
    }

    /// Engine time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed().mul_f64(self.speed)
    }

    /// The moment of the wall clock at which so much engine time has passed.
    pub(crate) fn at(&self, engine_time: Duration) -> Instant {
        self.start + self.wall(engine_time)
    }

    /// How long this much engine time takes on the wall clock.
    pub(crate) fn wall(&self, engine_time: Duration) -> Duration {
        engine_time.div_f64(self.speed)
    }
}
