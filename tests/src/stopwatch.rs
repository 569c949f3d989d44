//! How long something takes that must be quick, on a machine that now and then stands still.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How often the ticker looks at the time.
const TICK: Duration = Duration::from_millis(1);
/// A ticker that could run looks again within this time: what it missed beyond, the machine stood still.
const LONGEST_TICK: Duration = Duration::from_millis(10);

/// Tells how much time has passed since it was started in which threads of this machine could run: it stands while the
/// machine stands, so that a bound on it says something of what is measured, and nothing of the machine's pauses.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    started: Duration,
}

impl Stopwatch {
    pub fn start() -> Stopwatch {
        Stopwatch { started: passed() }
    }

    pub fn elapsed(&self) -> Duration {
        passed().saturating_sub(self.started)
    }
}

/// The time since a ticker of this process was started, as that ticker saw it.
fn passed() -> Duration {
    static PASSED: OnceLock<Arc<AtomicU64>> = OnceLock::new();
    let passed = PASSED.get_or_init(|| {
        let passed = Arc::new(AtomicU64::new(0));
        let ticked = Arc::clone(&passed);
        std::thread::spawn(move || {
            let mut before = Instant::now();
            loop {
                std::thread::sleep(TICK);
                let now = Instant::now();
                let tick = (now - before).min(LONGEST_TICK).as_nanos();
                ticked.fetch_add(u64::try_from(tick).unwrap_or(u64::MAX), Ordering::Relaxed);
                before = now;
            }
        });
        passed
    });
    Duration::from_nanos(passed.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_by_itself_and_no_faster_than_the_time() {
        let (stopwatch, begun) = (Stopwatch::start(), Instant::now());
        while stopwatch.elapsed() < Duration::from_millis(100) {
            std::thread::yield_now();
        }
        assert!(begun.elapsed() + LONGEST_TICK >= Duration::from_millis(100));
    }
}
