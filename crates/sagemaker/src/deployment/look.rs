//! What the machine is told of the units of an endpoint, and of the copies of a component on it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use isotherm_core::{Availability, InstanceId};
use isotherm_fleet::{Endpoint, Fleet, Variant};

use super::alarms::AlarmSource;
use super::ordered::Ordered;
use super::orders::{copy_key, instance_key};
use super::progress::{Phase, Progress, Unit};
use super::rollout::{Facts, UnitStanding};
use crate::records::{EndpointRecord, InferenceComponentRecord};
use crate::shapes::Timestamp;

/// What is known beside the records.
pub(super) struct Surroundings<'a> {
    pub(super) now: Timestamp,
    pub(super) ordered: &'a Ordered,
    pub(super) fleet: &'a Fleet,
    pub(super) alarms: &'a dyn AlarmSource,
    /// The name by which the fleet knows the endpoint.
    pub(super) fleet_name: &'a str,
}

/// What is known of the instances of an endpoint.
pub(super) struct InstanceFacts<'a> {
    pub(super) around: &'a Surroundings<'a>,
    pub(super) record: &'a EndpointRecord,
    /// For an endpoint of components: the ids of the instances that hold copies.
    pub(super) holding: Option<HashSet<String>>,
    /// The instances that managed scaling has chosen to go.
    pub(super) chosen: HashSet<String>,
}

/// What is known of the copies of a component.
pub(super) struct CopyFacts<'a> {
    pub(super) around: &'a Surroundings<'a>,
    pub(super) record: &'a InferenceComponentRecord,
    /// What there is of the endpoint.
    pub(super) hosts: &'a Progress,
    /// Why copies get no place, by their ids.
    pub(super) obstacles: HashMap<String, String>,
}

impl Surroundings<'_> {
    /// Whether nothing is in flight on an instance, and nothing waits that only its variant could serve: where an
    /// instance drains, the others do; where a whole variant goes, its instances serve who waited when traffic moved.
    fn is_idle(&self, variants: impl Fn(&Endpoint) -> Vec<Arc<Variant>>, id: &str) -> bool {
        let topology = self.fleet.topology();
        let Some(endpoint) = topology.endpoint(self.fleet_name) else { return true };
        let (id, now) = (InstanceId::from(id), self.fleet.clock().now());
        let mut variants = variants(endpoint).into_iter();
        let found = variants.find_map(|variant| {
            let instances = variant.instances(now);
            let one = instances.iter().find(|one| *one.instance.id() == id)?.clone();
            Some((variant, one))
        });
        found.is_none_or(|(variant, one)| {
            one.in_flight == 0 && (one.availability == Availability::Draining || variant.waiting() == 0)
        })
    }
}

impl Facts for InstanceFacts<'_> {
    fn now(&self) -> Timestamp {
        self.around.now
    }

    fn standing(&self, unit: &Unit) -> UnitStanding {
        match (&self.holding, unit.phase) {
            (None, _) => self.around.ordered.standing(&instance_key(self.record, unit)),
            // An instance for components is nothing but their place.
            (Some(_), Phase::Stopping) => UnitStanding::Gone,
            (Some(_), _) => UnitStanding::Running,
        }
    }

    fn is_idle(&self, unit: &Unit) -> bool {
        if let Some(holding) = &self.holding {
            return !holding.contains(&unit.id());
        }
        let variants = |endpoint: &Endpoint| {
            let shares = endpoint.variants().iter().chain(endpoint.shadow());
            let is_its =
                |variant: &&Arc<Variant>| **variant.name() == *unit.group && variant.revision() == unit.revision;
            shares.map(|share| &share.variant).filter(is_its).cloned().collect()
        };
        self.around.is_idle(variants, &unit.id())
    }

    fn alarm(&self, names: &[String]) -> Option<String> {
        if names.is_empty() { None } else { self.around.alarms.in_alarm(&self.record.identity.account, names) }
    }

    fn leaves_first(&self, unit: &Unit) -> bool {
        match &self.holding {
            None => false,
            Some(_) if !self.chosen.is_empty() => self.chosen.contains(&unit.id()),
            Some(holding) => !holding.contains(&unit.id()),
        }
    }
}

impl Facts for CopyFacts<'_> {
    fn now(&self) -> Timestamp {
        self.around.now
    }

    fn standing(&self, unit: &Unit) -> UnitStanding {
        self.around.ordered.standing(&copy_key(self.record, unit))
    }

    fn is_idle(&self, unit: &Unit) -> bool {
        let component = &self.record.identity.name;
        let variants =
            |endpoint: &Endpoint| endpoint.component(component).map(|it| it.variant.clone()).into_iter().collect();
        self.around.is_idle(variants, &unit.id())
    }

    fn alarm(&self, names: &[String]) -> Option<String> {
        if names.is_empty() { None } else { self.around.alarms.in_alarm(&self.record.identity.account, names) }
    }

    fn needs_hosts(&self) -> bool {
        true
    }

    fn loses_host(&self, unit: &Unit) -> bool {
        let host = unit.host.as_deref();
        host.is_some_and(|host| !self.hosts.units.iter().any(|unit| unit.serves() && unit.id() == host))
    }

    fn obstacle(&self, unit: &Unit) -> Option<String> {
        self.obstacles.get(&unit.id()).cloned()
    }
}
