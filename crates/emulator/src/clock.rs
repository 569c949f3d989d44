//! Maps wall-clock time to model time and back, at a rate that may change while the engine runs.

use std::time::{Duration, Instant};

/// Model time = time since the anchor × rate. Changing the rate moves the anchor, so model time never jumps.
#[derive(Debug)]
pub(crate) struct ModelClock {
    wall_anchor: Instant,
    model_anchor: Duration,
    rate: f64,
}

impl ModelClock {
    /// Model time zero is `now`; `rate` model seconds pass in one wall second (finite, above zero).
    pub(crate) fn new(now: Instant, rate: f64) -> Self {
        Self { wall_anchor: now, model_anchor: Duration::ZERO, rate }
    }

    /// The model time at a wall-clock instant; instants before the anchor count as the anchor.
    pub(crate) fn model_at(&self, wall: Instant) -> Duration {
        self.model_anchor + wall.saturating_duration_since(self.wall_anchor).mul_f64(self.rate)
    }

    /// The wall-clock instant at which a model time is reached, rounded up so that waking then is never too early.
    pub(crate) fn wall_at(&self, model: Duration) -> Instant {
        let ahead = model.saturating_sub(self.model_anchor).as_nanos() as f64 / self.rate;
        self.wall_anchor + Duration::from_nanos(ahead.ceil() as u64)
    }

    pub(crate) fn set_rate(&mut self, now: Instant, rate: f64) {
        self.model_anchor = self.model_at(now);
        self.wall_anchor = now;
        self.rate = rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_time_runs_at_the_rate() {
        let start = Instant::now();
        let clock = ModelClock::new(start, 10.0);
        assert_eq!(clock.model_at(start + Duration::from_millis(100)), Duration::from_secs(1));
        assert_eq!(clock.wall_at(Duration::from_secs(1)), start + Duration::from_millis(100));
    }

    #[test]
    fn waking_at_a_deadline_finds_it_reached() {
        let start = Instant::now();
        let clock = ModelClock::new(start, 7.3);
        for nanos in [1, 999, 12_345_678, 86_400_000_000_007] {
            let deadline = Duration::from_nanos(nanos);
            assert!(clock.model_at(clock.wall_at(deadline)) + Duration::from_nanos(8) >= deadline);
        }
    }

    #[test]
    fn changing_the_rate_does_not_jump() {
        let start = Instant::now();
        let mut clock = ModelClock::new(start, 2.0);
        clock.set_rate(start + Duration::from_secs(1), 0.5);
        assert_eq!(clock.model_at(start + Duration::from_secs(1)), Duration::from_secs(2));
        assert_eq!(clock.model_at(start + Duration::from_secs(3)), Duration::from_secs(3));
    }
}
