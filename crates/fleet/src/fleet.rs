//! The fleet: the one snapshot that everybody reads, and the one place where it is written.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use isotherm_config::{ClientTls, Config};
use isotherm_telemetry::Metrics;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::directory::Directory;
use crate::{Clock, Endpoint, InstanceStatus, Location, Origin, Sessions, StoredResponses, Suspects, Topology};

/// Everything that is known of the engines behind the router. Cheap to clone: all clones are the same fleet.
#[derive(Clone)]
pub struct Fleet {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Clock,
    metrics: Arc<Metrics>,
    topology: ArcSwap<Topology>,
    /// Whoever writes holds it, so that changes come one after the other.
    writer: Mutex<Writer>,
    stored_responses: StoredResponses,
    sessions: Sessions,
    suspects: Suspects,
    /// Told after every change, so that probes and DNS follow.
    changed: Notify,
}

/// What only changes need to know.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// Instances that the admin API removed although the file or a DNS name lists them, and which of the two does.
    pub(crate) withdrawn: HashMap<Location, Origin>,
    /// TLS to instances of which the file says nothing.
    pub(crate) instances_tls: Option<ClientTls>,
}

impl Fleet {
    /// The fleet that a configuration describes. Nothing is resolved or probed before [`Fleet::spawn`].
    pub fn new(config: &Config, metrics: Arc<Metrics>, clock: Clock) -> Fleet {
        let shared = Shared {
            clock,
            metrics,
            topology: ArcSwap::default(),
            writer: Mutex::default(),
            stored_responses: StoredResponses::default(),
            sessions: Sessions::default(),
            suspects: Suspects::default(),
            changed: Notify::new(),
        };
        let fleet = Fleet { shared: Arc::new(shared) };
        fleet.apply(config);
        fleet
    }

    /// The clock that all times of this fleet are told by.
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.shared.metrics)
    }

    /// The topology as it is now. Keep it no longer than a request's placing takes; see [`ArcSwap::load`].
    pub fn topology(&self) -> Guard<Arc<Topology>> {
        self.shared.topology.load()
    }

    /// Where responses are stored that clients may come back to.
    pub fn stored_responses(&self) -> &StoredResponses {
        &self.shared.stored_responses
    }

    /// Where the sessions of clients live.
    pub fn sessions(&self) -> &Sessions {
        &self.shared.sessions
    }

    /// What instances died on.
    pub fn suspects(&self) -> &Suspects {
        &self.shared.suspects
    }

    /// Every instance as it stands, for people.
    pub fn list(&self) -> Vec<InstanceStatus> {
        let now = self.clock().now();
        let topology = self.topology();
        topology
            .variants()
            .flat_map(|variant| variant.instances(now))
            .map(|one| InstanceStatus::of(&one, now))
            .collect()
    }

    /// Whether traffic should be sent to this router: an instance may be chosen, and some instance was heard of since
    /// the router started.
    pub fn is_ready(&self) -> bool {
        let now = self.clock().now();
        self.topology().variants().flat_map(|variant| variant.instances(now)).any(|one| one.is_ready())
    }

    /// Whether every instance has shown whether it is well, what it serves, and what its engine tells of itself, as far
    /// as it tells anything.
    pub fn is_known(&self) -> bool {
        let now = self.clock().now();
        let topology = self.topology();
        topology.variants().all(|variant| {
            let asks = variant.plan().engine_metrics.enabled;
            variant.instances(now).iter().all(|one| one.is_known(asks))
        })
    }

    /// Makes a change of the topology, one at a time.
    pub(crate) fn write<T>(&self, change: impl FnOnce(&mut Writer, &Topology) -> T) -> T {
        let mut writer = self.shared.writer.lock();
        let topology = self.shared.topology.load_full();
        change(&mut writer, &topology)
    }

    /// Publishes these endpoints, with what their instances list, and lets probes and DNS follow.
    ///
    /// To be called by whoever holds the writer.
    pub(crate) fn publish(&self, endpoints: Vec<Arc<Endpoint>>) {
        let directory = Directory::of(&endpoints);
        self.shared.topology.store(Arc::new(Topology::new(endpoints, directory)));
        self.shared.changed.notify_one();
    }

    /// An instance lists other models than before.
    pub(crate) fn listings_changed(&self) {
        self.write(|_, topology| self.publish(topology.endpoints().to_vec()));
    }

    /// Resolves when something has changed since the last call.
    pub(crate) async fn changed(&self) {
        self.shared.changed.notified().await;
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("topology", &*self.topology()).finish_non_exhaustive()
    }
}
