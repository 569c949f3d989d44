//! Sleeps until an instant with microsecond precision, where the platform can, inside a tokio runtime.
//!
//! Tokio's own timer counts whole milliseconds. At speed 50 a decode step of 12 ms lasts 0.24 ms, so the engine's
//! steps are timed by a Linux `timerfd` that the runtime's epoll watches; elsewhere by tokio's timer, and the lag that
//! comes of it shows in the emulator's lag report.

use std::time::Instant;

#[cfg(target_os = "linux")]
pub(crate) use linux::StepTimer;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::StepTimer;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use tokio::net::unix::pipe::Receiver;

    use super::Instant;

    /// One kernel timer, re-armed for each deadline.
    ///
    /// Tokio has no type for a timer's descriptor. A pipe's reading end is what it resembles: it becomes readable, is
    /// read, and would block until the next time.
    #[derive(Debug)]
    pub(crate) struct StepTimer {
        timer: Receiver,
    }

    impl StepTimer {
        /// Must be called inside the runtime that will wait on it.
        pub(crate) fn new() -> io::Result<Self> {
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
            Ok(Self { timer: Receiver::from_owned_fd_unchecked(timer)? })
        }

        /// Returns when `deadline` has passed; dropping the future disarms nothing, the next call re-arms.
        pub(crate) async fn sleep_until(&self, deadline: Instant) -> io::Result<()> {
            loop {
                let ahead = deadline.saturating_duration_since(Instant::now());
                if ahead.is_zero() {
                    return Ok(());
                }
                let value = Timespec { tv_sec: ahead.as_secs() as i64, tv_nsec: i64::from(ahead.subsec_nanos()) };
                let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
                timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
                // Setting the timer forgets its last expiry, so this read would block, which makes tokio forget that
                // the timer was ready. Afterwards nothing needs to be read.
                let mut expirations = [0u8; 8];
                match self.timer.try_read(&mut expirations) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.timer.readable().await?,
                    outcome => {
                        outcome?;
                    }
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::io;

    use super::Instant;

    /// Tokio's timer, with its millisecond grain.
    #[derive(Debug)]
    pub(crate) struct StepTimer;

    impl StepTimer {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) async fn sleep_until(&self, deadline: Instant) -> io::Result<()> {
            tokio::time::sleep_until(deadline.into()).await;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn wakes_at_the_deadline_and_not_before() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let timer = StepTimer::new().unwrap();
            for micros in [0, 150, 300, 2_500] {
                let deadline = Instant::now() + Duration::from_micros(micros);
                timer.sleep_until(deadline).await.unwrap();
                assert!(Instant::now() >= deadline);
            }
        });
    }

    #[test]
    fn a_dropped_sleep_does_not_disturb_the_next() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let timer = StepTimer::new().unwrap();
            tokio::select! {
                biased;
                _ = timer.sleep_until(Instant::now() + Duration::from_millis(2)) => panic!("it woke too early"),
                () = std::future::ready(()) => {}
            }
            let deadline = Instant::now() + Duration::from_millis(5);
            timer.sleep_until(deadline).await.unwrap();
            assert!(Instant::now() >= deadline);
        });
    }
}
