//! A timer for something that keeps being put off: moving it later costs nothing until it rings.

use std::pin::Pin;
use std::task::{Context, Poll};

use isotherm_core::Time;
use isotherm_fleet::Clock;
use tokio::time::{Instant, Sleep};

/// Rings once when a point in time is reached that may be moved at any moment.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    /// Made when it is first waited for; rings at `set_for` or earlier.
    timer: Option<(Pin<Box<Sleep>>, Time)>,
}

impl Alarm {
    /// Ready when `due` has come; otherwise the task is woken by then. Every call may name another time.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, due: Time, clock: Clock) -> Poll<()> {
        loop {
            if let Some((sleep, set_for)) = &mut self.timer
                && *set_for <= due
                && sleep.as_mut().poll(context).is_pending()
            {
                // No look at the clock while the timer has not rung.
                return Poll::Pending;
            }
            let now = clock.now();
            let left = due.since(now);
            if left.is_zero() {
                return Poll::Ready(());
            }
            match &mut self.timer {
                Some((sleep, set_for)) => {
                    sleep.as_mut().reset(Instant::now() + left);
                    *set_for = due;
                }
                None => self.timer = Some((Box::pin(tokio::time::sleep(left)), due)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_rings_at_the_last_time_that_was_named() {
        let clock = Clock::start();
        let mut alarm = Alarm::default();
        let mut due = clock.now() + Duration::from_secs(10);
        let started = Instant::now();
        std::future::poll_fn(|context| {
            // Put off at the first ring, then pulled forward.
            if started.elapsed() >= Duration::from_secs(10) {
                due = Time::ZERO + Duration::from_secs(30);
            }
            let first = alarm.poll(context, due + Duration::from_secs(60), clock);
            assert!(first.is_pending());
            alarm.poll(context, due, clock)
        })
        .await;
        assert_eq!(started.elapsed().as_secs(), 30);
    }
}
