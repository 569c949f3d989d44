//! Makes a variant's instances what their source lists: the file, or the answer for a DNS name.
//!
//! The whole list is compared each time, not what changed since the last one, so nothing is missed for good.

use std::num::NonZeroU32;
use std::sync::Arc;

use isotherm_config::{ApiKey, InstanceEntry, InstanceSource, InstanceUrl};
use isotherm_core::{InstanceId, InstanceSpec, Weight};
use tracing::info;

use crate::fleet::Writer;
use crate::{Instance, InstanceNow, Location, Origin, Variant};

/// An instance as its source describes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Desired {
    pub(crate) id: InstanceId,
    pub(crate) url: InstanceUrl,
    pub(crate) weight: Weight,
    pub(crate) max_in_flight: Option<NonZeroU32>,
    pub(crate) api_key: Option<ApiKey>,
}

impl Desired {
    /// The instance that an entry of the file describes by its URL.
    pub(crate) fn by_url(entry: &InstanceEntry) -> Option<Desired> {
        match &entry.source {
            InstanceSource::Url { id, url } => Some(Desired::new(id.clone(), url.clone(), entry)),
            InstanceSource::Dns { .. } => None,
        }
    }

    /// The instance at a URL that an entry's DNS name was resolved to; the URL is its id.
    pub(crate) fn resolved(entry: &InstanceEntry, url: InstanceUrl) -> Desired {
        Desired::new(InstanceId::new(url.to_string()), url, entry)
    }

    fn new(id: InstanceId, url: InstanceUrl, entry: &InstanceEntry) -> Desired {
        Desired { id, url, weight: entry.weight, max_in_flight: entry.max_in_flight, api_key: entry.api_key.clone() }
    }

    fn spec(&self) -> InstanceSpec {
        InstanceSpec { id: self.id.clone(), weight: self.weight, max_in_flight: self.max_in_flight }
    }

    /// Begins the instance's life; false when one of that id lives already.
    pub(crate) fn add_to(&self, variant: &Variant, origin: &Origin) -> bool {
        let instance = Instance::new(variant.location_of(&self.id), &self.url, self.api_key.clone(), origin.clone());
        let added = variant.add(self.spec(), Arc::new(instance)).is_some();
        if added {
            info!(endpoint = %variant.endpoint(), variant = %variant.name(), instance = %self.id, %origin, "added");
        }
        added
    }

    /// Makes the living instance of that id as described, in place where that is possible.
    fn change(&self, variant: &Variant, present: &InstanceNow, origin: &Origin) {
        let spec = self.spec();
        if !present.instance.is_reached_by(&self.url, self.api_key.as_ref()) {
            // Another URL is another process: what was counted and seen of the old one says nothing about it.
            variant.take_out(&self.id, "replaced: its URL or its key changed");
            self.add_to(variant, origin);
            if present.is_draining() {
                variant.set_draining(&self.id, true);
            }
        } else if (present.weight, present.max_in_flight) != (spec.weight, spec.max_in_flight) {
            variant.update(&spec);
        }
    }
}

impl Writer {
    /// Adds, changes and removes the instances of one origin until they are those that are desired.
    ///
    /// Instances of other origins stay as they are, also where they have an id that is desired here. What was removed by
    /// the admin API stays away as long as it is listed, and may come back once it was not.
    pub(crate) fn reconcile(&mut self, variant: &Variant, origin: &Origin, desired: &[Desired]) {
        let is_desired = |id: &InstanceId| desired.iter().any(|one| one.id == *id);
        self.withdrawn
            .retain(|location, from| from != origin || !variant.is_at(location) || is_desired(&location.instance));
        let present = variant.instances(variant.clock().now());
        for one in present.iter().filter(|one| one.instance.origin() == origin) {
            if !is_desired(one.instance.id()) {
                variant.take_out(one.instance.id(), "no longer listed");
            }
        }
        for one in desired {
            let same_id = present.iter().find(|present| *present.instance.id() == one.id);
            match same_id {
                None if self.is_withdrawn(&variant.location_of(&one.id)) => {}
                None => drop(one.add_to(variant, origin)),
                Some(present) if present.instance.origin() == origin => one.change(variant, present, origin),
                Some(_) => {}
            }
        }
    }

    fn is_withdrawn(&self, location: &Location) -> bool {
        self.withdrawn.contains_key(location)
    }
}
