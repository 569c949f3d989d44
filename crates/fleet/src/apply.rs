//! Makes the fleet what a configuration describes, at the start and at every reload.

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;

use std::sync::Arc;

use isotherm_config::Config;
use tracing::info;

use crate::fleet::Writer;
use crate::{Endpoint, Fleet, Topology, TrafficShare, Variant};

impl Fleet {
    /// Makes the fleet what the configuration describes.
    ///
    /// Changes only what came from the file: instances that were added or removed by the admin API stay so, and so do
    /// drains. An instance whose id, URL and key stay keeps its counters and its health; new weights, bounds and
    /// routing are taken over in place. Requests in flight on what is gone end undisturbed.
    pub fn apply(&self, config: &Config) {
        self.write(|writer, before| {
            let endpoints = config.endpoints.iter().map(|endpoint| self.endpoint(writer, before, endpoint)).collect();
            self.publish(endpoints);
            // Only now that nobody finds them any more.
            let after = self.topology();
            for gone in before.variants().filter(|variant| after.variants().all(|kept| !Arc::ptr_eq(kept, variant))) {
                gone.retire();
            }
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
                None => Arc::new(Variant::new(Arc::clone(&name), configured.clone(), self.metrics(), self.clock())),
            };
            writer.follow_file(&variant);
            TrafficShare { variant, weight: configured.weight.get() }
        };
        Arc::new(Endpoint::new(name.clone(), configured.variants.iter().map(share).collect()))
    }
}

impl Variant {
    /// Ends the life of every instance of a variant that is no longer there.
    fn retire(&self) {
        info!(endpoint = %self.endpoint(), variant = %self.name(), "variant removed");
        for one in self.instances(self.clock().now()) {
            self.remove(one.instance.id(), "its variant was removed");
        }
    }
}
