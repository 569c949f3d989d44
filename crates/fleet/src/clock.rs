//! The one clock of the process: monotonic time for everything that routing decides by.

use isotherm_core::Time;
use tokio::time::Instant;

/// Tells the time since it was started; copies agree with each other.
///
/// Reads tokio's clock, so that tests that pause tokio's time pause this one.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that begins now. A process needs one: times of different clocks don't compare.
    pub fn start() -> Clock {
        Clock { origin: Instant::now() }
    }

    /// The time now.
    pub fn now(&self) -> Time {
        Time::from_elapsed(self.origin.elapsed())
    }
}
