//! Instances behind a DNS name: resolved again and again, and compared with those that are there.

mod system;
#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use isotherm_config::{DnsName, InstanceEntry, InstanceSource};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

pub use self::system::SystemResolver;
use crate::reconcile::Desired;
use crate::watch::jitter;
use crate::{Fleet, Origin, Variant};

/// How long one resolution may take, all its lookups together.
const TIMEOUT: Duration = Duration::from_secs(10);
/// No name is resolved more often than this, whatever its records say and unless configured so.
const LEAST_INTERVAL: Duration = Duration::from_secs(1);

/// Resolves names of instances.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses behind the name, by the records that it says.
    fn resolve<'a>(&'a self, name: &'a DnsName) -> Resolving<'a>;
}

/// A resolution under way.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = Result<Answer, ResolveError>> + Send + 'a>>;

/// What a name stands for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Address and port of each instance, in any order. None when the name has no such records.
    pub addresses: Vec<SocketAddr>,
    /// How long the records may be believed.
    pub time_to_live: Duration,
}

/// Why a name was not resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ResolveError(
    /// What went wrong, for people.
    pub String,
);

/// One name of one variant, resolved for as long as the configuration has it.
pub(crate) struct NameFollower {
    pub(crate) fleet: Fleet,
    pub(crate) variant: Arc<Variant>,
    pub(crate) name: DnsName,
    pub(crate) resolver: Arc<dyn Resolve>,
}

impl NameFollower {
    /// Follows the name until the configuration no longer has it.
    ///
    /// While the resolver fails, and also while it says that there is nothing, the last answer stays in force: a name
    /// service that is restarting must not empty the fleet, and whether an instance lives is for the probes to say.
    pub(crate) async fn run(self) {
        let mut failures = 0u32;
        while let Some(entry) = self.entry() {
            let interval = match entry.source {
                InstanceSource::Dns { resolve_interval, .. } => resolve_interval,
                InstanceSource::Url { .. } => return,
            };
            let shortest = LEAST_INTERVAL.min(interval);
            let wait = match self.resolve().await {
                Ok(answer) => {
                    if failures > 0 {
                        info!(name = %self.name, "resolved again");
                    }
                    failures = 0;
                    self.fleet.follow_answer(&self.variant, &self.name, &answer.addresses);
                    answer.time_to_live.clamp(shortest, interval)
                }
                Err(error) => {
                    if failures == 0 {
                        warn!(name = %self.name, "not resolved, the last answer stays in force: {error}");
                    }
                    failures += 1;
                    shortest.saturating_mul(1 << failures.min(10)).min(interval)
                }
            };
            sleep(wait.mul_f64(jitter(0.9, 1.0))).await;
        }
    }

    /// A non-empty answer.
    async fn resolve(&self) -> Result<Answer, ResolveError> {
        let timed_out = |_| Err(ResolveError(format!("no answer within {} s", TIMEOUT.as_secs())));
        let answer = timeout(TIMEOUT, self.resolver.resolve(&self.name)).await.unwrap_or_else(timed_out)?;
        if answer.addresses.is_empty() {
            return Err(ResolveError(String::from("the name has no such records")));
        }
        Ok(answer)
    }

    fn entry(&self) -> Option<InstanceEntry> {
        self.variant.entry_of(&self.name)
    }
}

impl Fleet {
    /// Makes the instances behind a name those of its latest answer. What left it finishes its requests.
    fn follow_answer(&self, variant: &Arc<Variant>, name: &DnsName, addresses: &[SocketAddr]) {
        self.write(|writer, topology| {
            let is_there = topology.variants().any(|present| Arc::ptr_eq(present, variant));
            let Some(entry) = variant.entry_of(name).filter(|_| is_there) else { return };
            let mut addresses = addresses.to_vec();
            addresses.sort_unstable();
            addresses.dedup();
            let desired: Vec<_> = addresses
                .iter()
                .map(|address| Desired::resolved(&entry, name.instance_at(address.ip(), address.port())))
                .collect();
            writer.reconcile(variant, &Origin::Dns(name.clone()), &desired);
            // The file may list an id that stood in the answer until now.
            writer.follow_file(variant);
            self.publish(topology.endpoints().to_vec());
        });
    }
}

impl Variant {
    /// The entry of the configuration that names this DNS name.
    pub(crate) fn entry_of(&self, name: &DnsName) -> Option<InstanceEntry> {
        let plan = self.plan();
        let is_it =
            |entry: &&InstanceEntry| matches!(&entry.source, InstanceSource::Dns { name: it, .. } if it == name);
        plan.instances.iter().find(is_it).cloned()
    }
}
