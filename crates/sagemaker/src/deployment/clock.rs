//! The time of day for the waits of deployments: the system's at the start, carried on by tokio's clock.

use tokio::time::Instant;

use crate::shapes::Timestamp;

/// Tells the time of day. It does not jump when the system's clock is set, and stands where tokio's time is paused.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    began: Timestamp,
    origin: Instant,
}

impl Clock {
    /// A clock that shows the system's time now.
    pub(super) fn start() -> Clock {
        Clock { began: Timestamp::now(), origin: Instant::now() }
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        let elapsed = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        Timestamp::from_milliseconds(self.began.milliseconds().saturating_add(elapsed))
    }
}
