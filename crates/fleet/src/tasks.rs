//! Keeps one task for every instance and every DNS name of the fleet, and the gauges true.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use isotherm_config::DnsName;
use isotherm_core::Availability;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::dns::NameFollower;
use crate::watch::Watch;
use crate::{Fleet, InstanceNow, Resolve, SystemResolver, Variant};

/// How often tasks and gauges are compared with the fleet even when nobody told of a change.
const COMPARE_EVERY: Duration = Duration::from_secs(1);
/// How much the first questions to instances that came together are spread, for each of them.
const SPREAD: Duration = Duration::from_millis(1);

/// The fleet's probes, listings and resolutions; they end when this is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the probes"]
pub struct FleetTasks {
    _follower: Running,
}

impl Fleet {
    /// Begins to probe, to list models and to resolve names, on the runtime that this is called on.
    pub fn spawn(&self) -> FleetTasks {
        self.spawn_with(Arc::new(SystemResolver::default()))
    }

    /// Like [`Fleet::spawn`], with a resolver of one's own.
    pub fn spawn_with(&self, resolver: Arc<dyn Resolve>) -> FleetTasks {
        let follower = Follower { fleet: self.clone(), resolver, running: HashMap::new() };
        FleetTasks { _follower: Running(tokio::spawn(follower.run())) }
    }

    /// Sets the gauges of every variant and instance to how it stands now. Done every second by the tasks.
    pub fn refresh_gauges(&self) {
        let now = self.clock().now();
        let topology = self.topology();
        for variant in topology.variants() {
            variant.instances(now).iter().for_each(InstanceNow::refresh_gauges);
            variant.metrics().set_index_bytes(variant.index_bytes());
        }
    }
}

impl InstanceNow {
    fn refresh_gauges(&self) {
        let metrics = self.instance.metrics();
        metrics.set_up(self.availability != Availability::Down);
        metrics.set_ejected(matches!(self.availability, Availability::Ejected { .. }));
        metrics.set_draining(self.is_draining());
    }
}

/// What there is one task for.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Followed {
    Instance {
        serial: u64,
    },
    /// The variant by its address, which stays its own while the task holds on to it.
    Name {
        variant: usize,
        name: DnsName,
    },
}

/// A task that ends when this is dropped.
struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Running").field(&!self.0.is_finished()).finish()
    }
}

struct Follower {
    fleet: Fleet,
    resolver: Arc<dyn Resolve>,
    running: HashMap<Followed, Running>,
}

impl Follower {
    async fn run(mut self) {
        let mut ticks = interval(COMPARE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.compare();
            self.fleet.refresh_gauges();
            tokio::select! {
                () = self.fleet.changed() => {}
                _ = ticks.tick() => {}
            }
        }
    }

    /// Ends the tasks of what is gone, and begins those of what is new or whose task broke.
    fn compare(&mut self) {
        let now = self.fleet.clock().now();
        let topology = Arc::clone(&self.fleet.topology());
        let mut before = std::mem::take(&mut self.running);
        before.retain(|_, task| !task.0.is_finished());
        let mut new = Vec::new();
        for variant in topology.variants() {
            for one in variant.instances(now) {
                let followed = Followed::Instance { serial: one.instance.serial() };
                match before.remove_entry(&followed) {
                    Some((followed, task)) => drop(self.running.insert(followed, task)),
                    None => new.push((followed, Arc::clone(variant), one)),
                }
            }
            for name in variant.names() {
                let followed = Followed::Name { variant: Arc::as_ptr(variant).addr(), name: name.clone() };
                let task = before.remove(&followed).unwrap_or_else(|| self.follow_name(variant, name));
                self.running.insert(followed, task);
            }
        }
        let spread = SPREAD.saturating_mul(u32::try_from(new.len()).unwrap_or(u32::MAX));
        for (followed, variant, one) in new {
            let watch = Watch::new(self.fleet.clone(), variant, one.instance, one.generation);
            self.running.insert(followed, Running(tokio::spawn(watch.run(spread))));
        }
    }

    fn follow_name(&self, variant: &Arc<Variant>, name: DnsName) -> Running {
        let (fleet, resolver) = (self.fleet.clone(), Arc::clone(&self.resolver));
        let follower = NameFollower { fleet, variant: Arc::clone(variant), name, resolver };
        Running(tokio::spawn(follower.run()))
    }
}
