//! Makes a variant's instances what their source lists: the file, or the answer for a DNS name.
//!
//! The whole list is compared each time, not what changed since the last one, so nothing is missed for good.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use isotherm_config::{ApiKey, ClientTls, DnsName, InstanceEntry, InstanceSource, InstanceUrl};
use isotherm_core::{InstanceId, InstanceSpec, Weight};

use crate::fleet::Writer;
use crate::{Instance, InstanceNow, Origin, Variant};

/// An instance as its source describes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Desired {
    pub(crate) id: InstanceId,
    /// The instance that it lies on, where it is a copy of a component.
    pub(crate) host: Option<InstanceId>,
    pub(crate) url: InstanceUrl,
    pub(crate) weight: Weight,
    pub(crate) max_in_flight: Option<NonZeroU32>,
    pub(crate) api_key: Option<ApiKey>,
    pub(crate) tls: Option<ClientTls>,
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
        let (weight, max_in_flight) = (entry.weight, entry.max_in_flight);
        let (api_key, tls) = (entry.api_key.clone(), entry.tls.clone());
        Desired { id, host: None, url, weight, max_in_flight, api_key, tls }
    }

    fn spec(&self) -> InstanceSpec {
        InstanceSpec {
            id: self.id.clone(),
            weight: self.weight,
            max_in_flight: self.max_in_flight,
            host: self.host.clone(),
        }
    }

    fn instance(&self, variant: &Variant, origin: &Origin) -> Arc<Instance> {
        let metrics = variant.instance_metrics(&self.id);
        let location = variant.location_of(&self.id);
        let (api_key, tls) = (self.api_key.clone(), self.tls.clone());
        Arc::new(Instance::new(location, &self.url, api_key, tls, origin.clone(), metrics).on(self.host.clone()))
    }

    /// Begins the instance's life.
    pub(crate) fn add_to(&self, variant: &Variant, origin: &Origin) {
        variant.add(self.spec(), self.instance(variant, origin));
    }

    /// Makes the living instance of that id as described, in place where that is possible.
    fn change(&self, variant: &Variant, present: &InstanceNow, origin: &Origin) {
        let spec = self.spec();
        present.instance.set_tls(self.tls.clone());
        if !present.instance.is_reached_by(&self.url, self.api_key.as_ref()) {
            // Another URL is another process: what was counted and seen of the old one says nothing about it.
            self.replace(variant, present, origin, "its URL or its key changed");
        } else if (present.weight, present.max_in_flight) != (spec.weight, spec.max_in_flight) {
            variant.update(&spec);
        }
    }

    /// Ends the life of the instance of that id and begins its own.
    fn replace(&self, variant: &Variant, present: &InstanceNow, origin: &Origin, why: &str) {
        variant.replace(self.spec(), self.instance(variant, origin), present.is_draining(), why);
    }
}

impl Writer {
    /// Makes a variant's instances those that the file lists, and removes those of DNS names that it no longer has.
    pub(crate) fn follow_file(&mut self, variant: &Variant) {
        let plan = variant.plan();
        let desired: Vec<_> = plan.instances.iter().filter_map(Desired::by_url).collect();
        self.reconcile(variant, &Origin::File, &desired);
        for name in self.names_in(variant).difference(&variant.names()) {
            self.reconcile(variant, &Origin::Dns(name.clone()), &[]);
        }
    }

    /// Adds, changes and removes the instances of one origin until they are those that are desired.
    ///
    /// Instances of other origins stay as they are, also where they have an id that is desired here, but for those of a
    /// DNS name that the configuration no longer has. What was removed by the admin API stays away as long as it is
    /// listed, and may come back once it was not.
    pub(crate) fn reconcile(&mut self, variant: &Variant, origin: &Origin, desired: &[Desired]) {
        let ids: HashSet<_> = desired.iter().map(|one| &one.id).collect();
        self.withdrawn
            .retain(|location, from| from != origin || !variant.is_at(location) || ids.contains(&location.instance));
        let names = variant.names();
        let is_abandoned = |origin: &Origin| origin.name().is_some_and(|name| !names.contains(name));
        let present = variant.instances(variant.clock().now());
        let gone: Vec<_> = present.iter().filter(|one| one.instance.origin() == origin).collect();
        let present: HashMap<_, _> = present.iter().map(|one| (one.instance.id(), one)).collect();
        for one in desired {
            match present.get(&one.id) {
                None if self.withdrawn.contains_key(&variant.location_of(&one.id)) => {}
                None => one.add_to(variant, origin),
                Some(present) if present.instance.origin() == origin => one.change(variant, present, origin),
                Some(present) if is_abandoned(present.instance.origin()) => {
                    one.replace(variant, present, origin, "it is listed in another way");
                }
                Some(_) => {}
            }
        }
        // Only now: a variant whose instances are all replaced is never without any, and whoever waits stays.
        for one in gone.into_iter().filter(|one| !ids.contains(one.instance.id())) {
            variant.remove(one.instance.id(), "no longer listed");
        }
    }

    /// The DNS names from which the variant has instances, or would have them.
    fn names_in(&self, variant: &Variant) -> HashSet<DnsName> {
        let present = variant.instances(variant.clock().now());
        let of_present = present.iter().map(|one| one.instance.origin());
        let withdrawn = self.withdrawn.iter().filter(|(location, _)| variant.is_at(location));
        of_present.chain(withdrawn.map(|(_, origin)| origin)).filter_map(Origin::name).cloned().collect()
    }
}

impl Variant {
    /// The DNS names that the configuration has for it.
    pub(crate) fn names(&self) -> HashSet<DnsName> {
        let name = |entry: &InstanceEntry| match &entry.source {
            InstanceSource::Dns { name, .. } => Some(name.clone()),
            InstanceSource::Url { .. } => None,
        };
        self.plan().instances.iter().filter_map(name).collect()
    }
}
