//! Watches the router for the views of it: takes what finished requests left and reads the counters, off the data plane,
//! and keeps the last minutes within fixed bounds.

mod beliefs;
mod changes;
mod figures;
mod history;
mod prefixes;
mod requests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use isotherm_fleet::{Fleet, InstanceNow};
use isotherm_telemetry::{Metrics, Tapped};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::MissedTickBehavior;

pub(crate) use self::beliefs::{Beliefs, Repeated, Short};
pub(crate) use self::changes::{Changes, FleetChange};
pub(crate) use self::figures::{Figures, Rates, share, sum};
pub(crate) use self::history::{History, InstancePoint, POINTS, STEP, VariantHistory, VariantPoint};
pub(crate) use self::prefixes::{HotPrefix, Prefixes};
pub(crate) use self::requests::{Requests, ShownRequest, unix_seconds};
use crate::alerts::Watchman;
use crate::shadow::Shadows;

/// How often finished requests are taken in.
const TAKE_EVERY: Duration = Duration::from_secs(1);

/// How many hot prefixes have series.
const SHOWN_PREFIXES: usize = 10;

/// What is known of the last minutes. Cheap to clone: all clones see the same.
#[derive(Clone)]
pub(crate) struct Observer {
    fleet: Fleet,
    metrics: Arc<Metrics>,
    seen: Arc<Mutex<Seen>>,
    shadows: Arc<Mutex<Shadows>>,
    alerts: Watchman,
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
    /// What changes of the fleet moved.
    pub(crate) changes: Changes,
    /// What instances should have cached, and had not.
    pub(crate) beliefs: Beliefs,
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}

impl Observer {
    pub(crate) fn new(fleet: Fleet, metrics: Arc<Metrics>, alerts: Watchman) -> Observer {
        let seen = Arc::new(Mutex::new(Seen::default()));
        Observer { fleet, metrics, seen, shadows: Arc::default(), alerts }
    }

    /// What was observed until now.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock()
    }

    /// What fires now.
    pub(crate) fn alerts(&self) -> &Watchman {
        &self.alerts
    }

    /// What strategies other than the one in force would have had.
    pub(crate) fn shadows(&self) -> MutexGuard<'_, Shadows> {
        self.shadows.lock()
    }

    /// Observes for as long as it is polled.
    pub(crate) async fn run(self) {
        let mut ticks = tokio::time::interval(TAKE_EVERY);
        // A point stands for the time that it took; catching up would crowd points into no time.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.observe(SystemTime::now());
            self.shadows.lock().observe(&self.fleet, &self.metrics);
        }
    }

    fn observe(&self, now: SystemTime) {
        let Tapped { keys, requests } = self.metrics.tap().take();
        let mut guard = self.seen.lock();
        let seen = &mut *guard;
        seen.requests.take_in(requests);
        seen.beliefs.follow(&self.fleet);
        seen.changes.look(&self.fleet, &seen.prefixes, now);
        let mut lengths = HashMap::new();
        for key in &keys {
            let repeats = seen.prefixes.take_in(key);
            seen.history.note_key(&key.endpoint, &key.variant, repeats);
            let length = *lengths
                .entry((&key.endpoint, &key.variant))
                .or_insert_with(|| self.prefix_length(&key.endpoint, &key.variant));
            seen.beliefs.take_in(key, length, now);
            seen.changes.take_in(key);
        }
        if seen.history.is_due(now) {
            seen.prefixes.fade();
            seen.history.step(&self.fleet, self.shadows.lock().take_predictions(), now);
            seen.beliefs.step(&self.fleet);
            self.show(seen);
            self.alerts.look(&self.fleet, seen, now);
        }
    }

    fn prefix_length(&self, endpoint: &str, variant: &str) -> Option<u32> {
        let topology = self.fleet.topology();
        let variant = topology.endpoint(endpoint).and_then(|endpoint| endpoint.variant(variant))?;
        variant.routing().prefix_length().map(|length| length.get())
    }

    /// Sets the gauges that only views know.
    fn show(&self, seen: &Seen) {
        let topology = self.fleet.topology();
        let hottest = seen.prefixes.hottest(SHOWN_PREFIXES);
        for variant in topology.variants() {
            let own =
                hottest.iter().filter(|hot| *hot.endpoint == **variant.endpoint() && *hot.variant == **variant.name());
            let own: Vec<(String, f64)> = own.map(|hot| (hot.key.clone(), hot.share)).collect();
            variant.metrics().set_hot_prefixes(&own);
            let history = seen.history.of(variant.endpoint(), variant.name());
            let instances = variant.instances(self.fleet.clock().now());
            let served = |one: &InstanceNow| {
                let points = history.map(|history| history.instance(one.instance.serial(), POINTS)).unwrap_or_default();
                points.iter().map(|point| point.counts.requests).sum::<u64>()
            };
            let all: u64 = instances.iter().map(served).sum();
            instances.iter().for_each(|one| one.instance.metrics().set_request_share(share(served(one), all)));
        }
    }
}
