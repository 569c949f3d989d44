//! A point in time as a plain number, so that decisions can run in wall-clock and in virtual time alike.

use std::ops::Add;
use std::time::Duration;

/// Nanoseconds since an origin that whoever holds the clock chooses (the router: its own start). Never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time(u64);

impl Time {
    /// The origin of the clock.
    pub const ZERO: Time = Time(0);

    /// The point that lies `nanoseconds` after the origin.
    pub const fn from_nanoseconds(nanoseconds: u64) -> Time {
        Time(nanoseconds)
    }

    /// The point that lies `elapsed` after the origin; saturates after 584 years.
    pub fn from_elapsed(elapsed: Duration) -> Time {
        Time(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanoseconds(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(Time::from_elapsed(duration).0))
    }
}
