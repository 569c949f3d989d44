//! Makes the fleet what a configuration describes, at the start and at every reload.

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;

use std::sync::Arc;

use isotherm_config::Config;
use tracing::{info, warn};

use crate::fleet::Writer;
use crate::{Endpoint, Fleet, Origin, Owner, Topology, TrafficShare, Variant};

impl Fleet {
    /// Makes the fleet what the configuration describes.
    ///
    /// Changes only what came from the file: managed endpoints stay as they are, instances that were added or removed by the admin API stay so, and so do
    /// drains. An instance whose id, URL and key stay keeps its counters and its health; new weights, bounds and
    /// routing are taken over in place. Requests in flight on what is gone end undisturbed.
    pub fn apply(&self, config: &Config) {
        self.write(|writer, before| {
            writer.instances_tls = config.instances_tls.clone();
            let (managed, of_file): (Vec<_>, Vec<_>) =
                before.endpoints().iter().cloned().partition(|endpoint| endpoint.owner() == Owner::Managed);
            let is_managed = |name: &str| managed.iter().any(|endpoint| **endpoint.name() == *name);
            let mut endpoints = Vec::with_capacity(of_file.len() + managed.len());
            for endpoint in &config.endpoints {
                if is_managed(endpoint.name.as_str()) {
                    warn!(endpoint = %endpoint.name, "left out of the file's: the control plane has one of that name");
                } else {
                    endpoints.push(self.endpoint(writer, before, endpoint));
                }
            }
            endpoints.extend(managed);
            self.publish_and_retire(before, endpoints);
            let after = self.topology();
            after.variants().for_each(|variant| variant.renew_tls(writer));
            writer.withdrawn.retain(|location, _| after.variant_at(location).is_some());
        });
    }

    /// The endpoint as configured; variants that were there before are the same as before.
    fn endpoint(
        &self,
        writer: &mut Writer,
        before: &Topology,
        configured: &isotherm_config::Endpoint,
    ) -> Arc<Endpoint> {
        let name = configured.name.shared();
        let known = before.endpoint(&name);
        let share = |configured: &isotherm_config::Variant| {
            let known = known.and_then(|endpoint| endpoint.variant(configured.name.as_str()));
            let variant = match known {
                Some(variant) => {
                    variant.set_plan(configured.clone());
                    Arc::clone(variant)
                }
                None => {
                    let (endpoint, plan) = (Arc::clone(&name), configured.clone());
                    let variant = Variant::new(endpoint, plan.name.shared(), 0, plan, self.metrics(), self.clock());
                    Arc::new(variant)
                }
            };
            writer.follow_file(&variant);
            TrafficShare { variant, weight: configured.weight.get() }
        };
        Arc::new(Endpoint::of_file(name.clone(), configured.variants.iter().map(share).collect()))
    }
}

impl Variant {
    /// Instances that the file does not list by their URL take over TLS as it is configured now.
    fn renew_tls(&self, writer: &Writer) {
        for one in self.instances(self.clock().now()) {
            match one.instance.origin() {
                Origin::File => {}
                Origin::Dns(name) => one.instance.set_tls(self.entry_of(name).and_then(|entry| entry.tls)),
                Origin::Api | Origin::Started => one.instance.set_tls(writer.instances_tls.clone()),
            }
        }
    }

    /// Ends the life of every instance of a variant that is no longer there.
    pub(crate) fn retire(&self) {
        info!(endpoint = %self.endpoint(), variant = %self.name(), "variant removed");
        for one in self.instances(self.clock().now()) {
            self.remove(one.instance.id(), "its variant was removed");
        }
    }
}
