//! Watches the router for the views of it: takes what finished requests left and reads the counters, off the data plane,
//! and keeps the last minutes within fixed bounds.

mod figures;
mod history;
mod prefixes;
mod requests;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use isotherm_fleet::Fleet;
use isotherm_telemetry::{Metrics, Tapped};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::MissedTickBehavior;

pub(crate) use self::figures::{Figures, Rates, share};
pub(crate) use self::history::{History, InstancePoint, POINTS, STEP, VariantHistory, VariantPoint};
pub(crate) use self::prefixes::{HotPrefix, Prefixes};
pub(crate) use self::requests::{Requests, ShownRequest, unix_seconds};

/// How often finished requests are taken in.
const TAKE_EVERY: Duration = Duration::from_secs(1);

/// What is known of the last minutes. Cheap to clone: all clones see the same.
#[derive(Clone)]
pub(crate) struct Observer {
    fleet: Fleet,
    metrics: Arc<Metrics>,
    seen: Arc<Mutex<Seen>>,
}

/// Everything that was observed.
#[derive(Default)]
pub(crate) struct Seen {
    /// The counters' differences, step by step.
    pub(crate) history: History,
    /// Which prefixes are asked for most.
    pub(crate) prefixes: Prefixes,
    /// The last requests, as they were sampled.
    pub(crate) requests: Requests,
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}

impl Observer {
    pub(crate) fn new(fleet: Fleet, metrics: Arc<Metrics>) -> Observer {
        let seen = Arc::new(Mutex::new(Seen::default()));
        Observer { fleet, metrics, seen }
    }

    /// What was observed until now.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock()
    }

    /// Observes for as long as it is polled.
    pub(crate) async fn run(self) {
        let mut ticks = tokio::time::interval(TAKE_EVERY);
        // A point stands for the time that it took; catching up would crowd points into no time.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.observe(SystemTime::now());
        }
    }

    fn observe(&self, now: SystemTime) {
        let Tapped { keys, requests } = self.metrics.tap().take();
        let mut seen = self.seen.lock();
        seen.requests.take_in(requests);
        for key in &keys {
            let repeats = seen.prefixes.take_in(key);
            seen.history.note_key(&key.endpoint, &key.variant, repeats);
        }
        if seen.history.is_due(now) {
            seen.prefixes.fade();
            seen.history.step(&self.fleet, now);
        }
    }
}
