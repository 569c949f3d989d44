//! The loop that makes endpoints what their records say, for as long as the process runs.
//!
//! Each pass reads everything, thinks each endpoint one step further, writes that down, and only then acts on it: so
//! whenever the process is killed, the next one finds in the store what was meant, and goes on.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use isotherm_fleet::{Fleet, ManagedEndpoint};
use isotherm_store::{Store, StoreError};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::{error, warn};

use super::adapters::Adapters;
use super::alarms::AlarmSource;
use super::clock::Clock;
use super::look::Surroundings;
use super::ordered::Ordered;
use super::orders::{copy_key, copy_order, instance_key, instance_order};
use super::pass::Pass;
use super::progress::{Phase, Unit};
use super::rollout::{Patience, UnitStanding};
use super::scaling::Scaling;
use super::state::{EndpointState, read_all, write};
use super::topology::{Hosted, fleet_name, topology};
use crate::Deployer;
use crate::providers::{InstanceOrder, Providers};
use crate::records::InferenceComponentRecord;

/// How often it looks while something moves: instances that drain tell nobody when they are idle.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often alarms are asked for while a deployment is watched.
const ASK_ALARMS_EVERY: Duration = Duration::from_secs(1);
/// How often it looks while nothing does.
const IDLE: Duration = Duration::from_secs(5);
/// How long it waits after the store failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What reconciling needs to know.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The account whose endpoints clients call by their bare names.
    pub own_account: String,
    /// Where `s3://BUCKET/KEY` lies on this machine, as `BUCKET/KEY`, if anywhere.
    pub artifacts: Option<PathBuf>,
    /// How long an instance that takes nothing new is watched at least before it is ended.
    pub settle: Duration,
    /// How long requests in flight on an instance that goes may take to end.
    pub drain: Duration,
    /// How many times faster than their minutes say the cool-downs of managed instance scaling pass.
    pub scaling_speed: NonZeroU32,
}

impl Settings {
    /// The settings for this account, with nothing on this machine: half a second to settle, ten minutes to drain.
    pub fn of_account(own_account: impl Into<String>) -> Settings {
        Settings {
            own_account: own_account.into(),
            artifacts: None,
            settle: Duration::from_millis(500),
            drain: Duration::from_secs(600),
            scaling_speed: NonZeroU32::MIN,
        }
    }
}

/// Brings endpoints from what their records say to what they should be.
pub struct Reconciler {
    store: Arc<Store>,
    fleet: Fleet,
    alarms: Arc<dyn AlarmSource>,
    settings: Settings,
    clock: Clock,
    wake: Arc<Notify>,
    ordered: Ordered,
    adapters: Adapters,
    scaling: Scaling,
    /// What the fleet was told last, by the names that it knows.
    published: HashMap<Arc<str>, ManagedEndpoint>,
    /// Told after every pass until nothing is missing any more of what an earlier life of this process had in service.
    missing: Option<watch::Sender<Missing>>,
}

/// The endpoints of which something was in service in an earlier life of this process and is neither routed to again nor
/// known to have failed; `None` before it was looked.
type Missing = Option<Vec<String>>;

/// A running reconciler.
#[derive(Debug)]
#[must_use = "what it does ends when it is dropped"]
pub struct Reconciling {
    wake: Arc<Notify>,
    stop: watch::Sender<bool>,
    missing: watch::Receiver<Missing>,
    task: JoinHandle<()>,
}

impl Reconciling {
    /// Whom operations wake.
    pub fn deployer(&self) -> Arc<dyn Deployer> {
        Arc::clone(&self.wake) as Arc<dyn Deployer>
    }

    /// Waits until what was in service in an earlier life of this process is routed to again, or has failed, but no
    /// longer than this; then, the names of the endpoints that are not back.
    pub async fn back(&self, longest: Duration) -> Vec<String> {
        let mut missing = self.missing.clone();
        let none_is = |missing: &Missing| missing.as_ref().is_some_and(Vec::is_empty);
        let _ = timeout(longest, missing.wait_for(none_is)).await;
        missing.borrow().clone().unwrap_or_default()
    }

    /// Stops reconciling and ends every instance that was started; records stay as they are.
    pub async fn shutdown(self) {
        self.stop.send_replace(true);
        let _ = self.task.await;
    }
}

impl Reconciler {
    /// A reconciler of the records in a store, with instances from these providers, into this fleet.
    pub fn new(
        store: Arc<Store>,
        fleet: Fleet,
        providers: Providers,
        alarms: Arc<dyn AlarmSource>,
        settings: Settings,
    ) -> Reconciler {
        let wake = Arc::new(Notify::new());
        Reconciler {
            ordered: Ordered::new(providers, Arc::clone(&wake)),
            adapters: Adapters::new(settings.artifacts.clone(), Arc::clone(&wake)),
            scaling: Scaling::at_speed(settings.scaling_speed),
            published: HashMap::new(),
            missing: None,
            clock: Clock::start(),
            store,
            fleet,
            alarms,
            settings,
            wake,
        }
    }

    /// Begins, on the runtime that this is called on.
    pub fn spawn(mut self) -> Reconciling {
        let (stop, stopping) = watch::channel(false);
        let (sender, missing) = watch::channel(None);
        self.missing = Some(sender);
        let wake = Arc::clone(&self.wake);
        Reconciling { wake, stop, missing, task: tokio::spawn(self.run(stopping)) }
    }

    async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        self.find_again().await;
        while !*stopping.borrow() {
            let pause = self.pass().unwrap_or_else(|error| {
                error!(%error, "the control plane's store can't be used");
                AFTER_FAILURE
            });
            let wake = Arc::clone(&self.wake);
            tokio::select! {
                changed = stopping.changed() => if changed.is_err() { break },
                _ = timeout(pause, wake.notified()) => {}
            }
        }
        for name in self.published.keys() {
            self.fleet.remove_endpoint(name);
        }
        self.ordered.shutdown().await;
    }

    /// Ends what an earlier life of this process started and the records no longer want.
    async fn find_again(&mut self) {
        match read_all(&self.store) {
            Ok(states) => {
                for record in states.iter().filter_map(|(_, state)| state.record.as_ref()) {
                    record.serving.say_what_runs_otherwise(&record.identity.name);
                }
                let mut orders = Orders::default();
                states.iter().for_each(|(_, state)| orders.collect(state, self.ordered.providers()));
                let wanted = orders.wanted.into_iter().filter_map(|(key, order)| order.map(|_| key)).collect();
                self.ordered.retain(&wanted).await;
            }
            Err(error) => error!(%error, "the control plane's store can't be read"),
        }
    }

    /// Looks at everything once; how long until the next look, if nobody wakes it.
    fn pass(&mut self) -> Result<Duration, StoreError> {
        self.ordered.look();
        let mut orders = Orders::default();
        let mut seen = HashSet::new();
        let mut pause = IDLE;
        let mut missing = Vec::new();
        for (key, before) in read_all(&self.store)? {
            let mut state = before.clone();
            self.think(&key, &mut state);
            let mut routed = None;
            if state != before {
                let store = Arc::clone(&self.store);
                // Whoever reads that something is in service finds it routed.
                if !write(&store, &before, &state, || routed = Some(self.publish(&state)))? {
                    // An operation came in between: its word first.
                    (state, pause) = (before, Duration::ZERO);
                }
            }
            if state.is_moving() {
                pause = pause.min(LOOK_EVERY);
            } else if let Some(milliseconds) = state.waits(self.clock.now()) {
                pause = pause.min(Duration::from_millis(milliseconds)).min(ASK_ALARMS_EVERY);
            }
            orders.collect(&state, self.ordered.providers());
            seen.extend(routed.unwrap_or_else(|| self.publish(&state)));
            if self.missing.is_some() && self.is_missing(&state) {
                missing.extend(state.record.map(|record| record.identity.name));
            }
        }
        let gone: Vec<_> = self.published.keys().filter(|name| !seen.contains(*name)).cloned().collect();
        for name in gone {
            self.published.remove(&name);
            self.fleet.remove_endpoint(&name);
        }
        // Only now: what ends is no longer routed to.
        self.ordered.follow(orders.wanted);
        self.ordered.try_again(&orders.in_service);
        if let Some(told) = self.missing.take() {
            self.missing = (!missing.is_empty()).then(|| told.clone());
            told.send_replace(Some(missing));
        }
        Ok(pause)
    }

    /// Whether something of an endpoint should be routed to, is not, and has not failed.
    fn is_missing(&self, state: &EndpointState) -> bool {
        let Some(record) = &state.record else { return false };
        let is_awaited = |key: String| {
            let failed = matches!(self.ordered.standing(&key), UnitStanding::Failed(_));
            !failed && self.ordered.reached(&key).is_none()
        };
        let mut instances = state.progress.units.iter().filter(|unit| unit.serves());
        let mut components = state.components.iter().filter(|component| component.record.base().is_none());
        (!record.serving.has_components() && instances.any(|unit| is_awaited(instance_key(record, unit))))
            || components.any(|component| {
                let mut copies = component.progress.units.iter().filter(|unit| unit.serves());
                copies.any(|unit| is_awaited(copy_key(&component.record, unit)))
            })
            || (0..state.components.len()).any(|at| self.adapters.is_loading(state, at))
    }

    fn think(&mut self, key: &str, state: &mut EndpointState) {
        let Some(record) = &state.record else { return };
        let fleet_name = fleet_name(record, &self.settings.own_account);
        let around = Surroundings {
            now: self.clock.now(),
            ordered: &self.ordered,
            fleet: &self.fleet,
            alarms: &*self.alarms,
            fleet_name: &fleet_name,
        };
        let milliseconds = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let patience =
            Patience { settle: milliseconds(self.settings.settle), drain: milliseconds(self.settings.drain) };
        let pass = Pass { key, around, patience, adapters: &mut self.adapters, scaling: &mut self.scaling };
        pass.think(state);
    }

    /// Tells the fleet what is to be routed; the endpoint's name there, if it is.
    fn publish(&mut self, state: &EndpointState) -> Option<Arc<str>> {
        let record = state.record.as_ref()?;
        let hosted = |at: usize| {
            let component = &state.components[at];
            let loaded_on = self.adapters.loaded_on(state, at);
            (!component.gone).then_some(Hosted { record: &component.record, progress: &component.progress, loaded_on })
        };
        let hosted: Vec<_> = (0..state.components.len()).filter_map(hosted).collect();
        let reached = |component: Option<&InferenceComponentRecord>, unit: &Unit| {
            let key = component.map_or_else(|| instance_key(record, unit), |component| copy_key(component, unit));
            self.ordered.reached(&key).cloned()
        };
        let wanted = topology(record, &state.progress, &hosted, &self.settings.own_account, reached);
        let wanted =
            wanted.inspect_err(|error| warn!(endpoint = record.identity.name, %error, "not routed")).ok()??;
        let name = Arc::clone(&wanted.name);
        if self.published.get(&name) != Some(&wanted) {
            match self.fleet.put_endpoint(&wanted) {
                Ok(()) => drop(self.published.insert(Arc::clone(&name), wanted)),
                Err(error) => warn!(endpoint = %name, %error, "not routed"),
            }
        }
        Some(name)
    }
}

/// What is to be ordered, and what is to be had again if it was lost.
#[derive(Default)]
struct Orders {
    wanted: HashMap<String, Option<InstanceOrder>>,
    in_service: HashSet<String>,
}

impl Orders {
    fn collect(&mut self, state: &EndpointState, providers: &Providers) {
        let Some(record) = &state.record else { return };
        if !record.serving.has_components() {
            for unit in &state.progress.units {
                let order = || instance_order(record, &state.progress, unit, providers);
                self.add(instance_key(record, unit), unit, order);
            }
        }
        for component in state.components.iter().filter(|component| !component.gone) {
            for unit in &component.progress.units {
                let kind = || state.instance_type(unit.host.as_deref()?, providers);
                let order = || copy_order(&component.record, &component.progress, unit, &kind()?);
                self.add(copy_key(&component.record, unit), unit, order);
            }
        }
    }

    fn add(&mut self, key: String, unit: &Unit, order: impl FnOnce() -> Option<InstanceOrder>) {
        match unit.phase {
            Phase::Wanted | Phase::Stopping => {}
            // It stays as long as it is there; gone with a crash, it is not had again.
            Phase::Draining { .. } => drop(self.wanted.insert(key, None)),
            Phase::Starting => drop(self.wanted.insert(key, order())),
            Phase::InService => {
                self.in_service.insert(key.clone());
                self.wanted.insert(key, order());
            }
        }
    }
}

impl fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconciler").field("settings", &self.settings).finish_non_exhaustive()
    }
}
