//! Endpoints of a control plane: it says what is wanted, whole, and the fleet becomes that.

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;

use std::num::NonZeroU32;
use std::sync::Arc;

use isotherm_config::{ApiKey, EngineMetrics, Health, InstanceUrl, Name, TrafficWeight};
use isotherm_core::{InstanceId, Routing, Weight};
use tracing::info;

use crate::fleet::Writer;
use crate::reconcile::Desired;
use crate::{Adapter, AsyncOutput, Component, Endpoint, Fleet, Origin, Owner, Topology, TrafficShare, Variant};

/// An endpoint as its control plane wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagedEndpoint {
    /// What clients call it by; `ACCOUNT/NAME` where it belongs to another account than the router's own.
    pub name: Arc<str>,
    /// Its production variants. Two may have one name if their revisions differ.
    pub variants: Vec<ManagedVariant>,
    /// The variant that gets a copy of the requests; its weight is the sampled share.
    pub shadow: Option<ManagedVariant>,
    /// What lies on its instances; `None` where they serve requests that name no component.
    pub components: Option<Vec<ManagedComponent>>,
    /// Where answers of asynchronous invocations go; `None` for the router's own place.
    pub async_output: Option<AsyncOutput>,
}

/// A variant as its control plane wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagedVariant {
    /// Its name.
    pub name: Name,
    /// Which deployment made it. One of the same name and revision is the same variant: its instances live on.
    pub revision: u64,
    /// Its share of the endpoint's traffic.
    pub weight: TrafficWeight,
    /// How an instance is chosen; changed in place.
    pub routing: Routing,
    /// How instances are probed.
    pub health: Health,
    /// The instances that take requests. Ids are unique among all variants of that name.
    pub instances: Vec<ManagedInstance>,
}

/// An instance, or a copy of a component, as its control plane wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagedInstance {
    /// Its stable name. With the same URL it is the same life.
    pub id: InstanceId,
    /// The instance on which a copy lies; `None` for an instance.
    pub host: Option<InstanceId>,
    /// Where it is reached.
    pub url: InstanceUrl,
    /// The key that it wants.
    pub api_key: Option<ApiKey>,
    /// Its share relative to the others.
    pub weight: Weight,
    /// The most requests that this router keeps in flight on it.
    pub max_in_flight: Option<NonZeroU32>,
    /// It takes nothing new, and what it has goes on. Not undone by a later `false`: whoever drained it may have been
    /// the admin API.
    pub draining: bool,
}

/// An inference component as its control plane wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagedComponent {
    /// Its name.
    pub name: Name,
    /// The production variant on whose instances it lies.
    pub production_variant: Name,
    /// What it is made of.
    pub kind: ComponentKind,
}

/// What an inference component is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum ComponentKind {
    /// A model of its own, in copies.
    Base {
        /// How a copy is chosen; changed in place.
        routing: Routing,
        /// How copies are probed.
        health: Health,
        /// Its copies, each with the instance that it lies on.
        copies: Vec<ManagedInstance>,
    },
    /// An adapter on copies of another component of the endpoint.
    Adapter {
        /// The name of that component.
        base: Name,
        /// The copies of it that hold the adapter.
        copies: Vec<InstanceId>,
    },
}

/// Why an endpoint could not be put.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// The configuration file has an endpoint of that name.
    #[error("endpoint {name:?} comes from the configuration file: choose another name, or take it out of the file")]
    FromFile {
        /// The name.
        name: Arc<str>,
    },
    /// An adapter's base is not a component of the endpoint.
    #[error("component {adapter:?} lies on component {base:?}, which the endpoint does not have")]
    NoBase {
        /// The adapter.
        adapter: Name,
        /// Its base.
        base: Name,
    },
}

impl Fleet {
    /// Makes an endpoint what its control plane wants, adding it where there is none of that name.
    ///
    /// One new snapshot. Who waits for room in a variant whose share becomes 0 goes where the traffic goes. A variant, or a component, of the same name and revision is the same as before; in it, an
    /// instance whose id, URL and key stay keeps its generation, its counters and its health. Weights, bounds and routing
    /// are taken over in place. Requests in flight on what is gone end undisturbed; but a request that has just picked
    /// a variant finds none of its instances once the variant is gone, so take its weight away some moments before.
    pub fn put_endpoint(&self, wanted: &ManagedEndpoint) -> Result<(), PutError> {
        self.write(|writer, before| {
            let known = before.endpoint(&wanted.name);
            if known.is_some_and(|endpoint| endpoint.owner() == Owner::File) {
                return Err(PutError::FromFile { name: Arc::clone(&wanted.name) });
            }
            wanted.check()?;
            let endpoint = Arc::new(self.managed(writer, known.map(|endpoint| &**endpoint), wanted));
            let left = known.map(|known| endpoint.left_by_traffic(known)).unwrap_or_default();
            let mut endpoints = before.endpoints().to_vec();
            match endpoints.iter_mut().find(|present| present.name() == endpoint.name()) {
                Some(present) => *present = endpoint,
                None => endpoints.push(endpoint),
            }
            self.publish_and_retire(before, endpoints);
            // Only now that they find where traffic goes instead.
            left.iter().for_each(|variant| variant.move_waiting_on());
            Ok(())
        })
    }

    /// Removes an endpoint of a control plane; false where there is none of that name. What it has in flight goes on.
    pub fn remove_endpoint(&self, name: &str) -> bool {
        self.write(|_, before| {
            let is_it = |endpoint: &Arc<Endpoint>| **endpoint.name() == *name && endpoint.owner() == Owner::Managed;
            let (gone, kept): (Vec<_>, Vec<_>) = before.endpoints().iter().cloned().partition(is_it);
            if !gone.is_empty() {
                info!(endpoint = name, "endpoint removed");
                self.publish_and_retire(before, kept);
            }
            !gone.is_empty()
        })
    }

    /// Publishes these endpoints, and ends the lives in the variants that are no longer among them.
    pub(crate) fn publish_and_retire(&self, before: &Topology, endpoints: Vec<Arc<Endpoint>>) {
        self.publish(endpoints);
        // Only now that nobody finds them any more.
        let after = self.topology();
        for gone in before.variants().filter(|variant| after.variants().all(|kept| !Arc::ptr_eq(kept, variant))) {
            gone.retire();
        }
    }

    fn managed(&self, writer: &mut Writer, known: Option<&Endpoint>, wanted: &ManagedEndpoint) -> Endpoint {
        let mut share = |wanted_variant: &ManagedVariant| {
            let ManagedVariant { name, revision, weight, .. } = wanted_variant;
            let plan = wanted_variant.plan();
            let variant = self.variant_of(known, &wanted.name, &name.shared(), *revision, plan);
            writer.follow_plan(&variant, &wanted_variant.instances);
            TrafficShare { variant, weight: weight.get() }
        };
        let variants = wanted.variants.iter().map(&mut share).collect();
        let shadow = wanted.shadow.as_ref().map(&mut share);
        let components = wanted.components.as_ref().map(|components| {
            let bases = components.iter().filter_map(|component| self.base(writer, known, &wanted.name, component));
            let mut all: Vec<_> = bases.collect();
            let adapters: Vec<_> = components.iter().filter_map(|component| component.adapter_on(&all)).collect();
            all.extend(adapters);
            all
        });
        let async_output = wanted.async_output.clone();
        Endpoint::managed(Arc::clone(&wanted.name), variants, shadow, components, async_output)
    }

    fn base(
        &self,
        writer: &mut Writer,
        known: Option<&Endpoint>,
        endpoint: &Arc<str>,
        wanted: &ManagedComponent,
    ) -> Option<Arc<Component>> {
        let ComponentKind::Base { routing, health, copies } = &wanted.kind else { return None };
        let plan = isotherm_config::Variant {
            name: wanted.name.clone(),
            weight: TrafficWeight::default(),
            routing: *routing,
            health: health.clone(),
            engine_metrics: EngineMetrics::default(),
            instances: Vec::new(),
        };
        let name = format!("{}/{}", wanted.production_variant, wanted.name).into();
        let variant = self.variant_of(known, endpoint, &name, 0, plan);
        writer.follow_plan(&variant, copies);
        let (name, production_variant) = (wanted.name.shared(), wanted.production_variant.shared());
        Some(Arc::new(Component { name, production_variant, variant, adapter: None }))
    }

    /// The endpoint's variant of that name and revision with this plan: the one that there is, or a new one.
    fn variant_of(
        &self,
        known: Option<&Endpoint>,
        endpoint: &Arc<str>,
        name: &Arc<str>,
        revision: u64,
        plan: isotherm_config::Variant,
    ) -> Arc<Variant> {
        let is_it = |variant: &&Arc<Variant>| (variant.name(), variant.revision()) == (name, revision);
        match known.and_then(|endpoint| endpoint.all_variants().find(is_it)) {
            Some(variant) => {
                if *variant.plan() != plan {
                    variant.set_plan(plan);
                }
                Arc::clone(variant)
            }
            None => {
                let (endpoint, name) = (Arc::clone(endpoint), Arc::clone(name));
                Arc::new(Variant::new(endpoint, name, revision, plan, self.metrics(), self.clock()))
            }
        }
    }
}

impl Writer {
    /// Makes a variant's instances those that are wanted.
    fn follow_plan(&mut self, variant: &Variant, wanted: &[ManagedInstance]) {
        let tls = &self.instances_tls;
        let desired: Vec<_> = wanted.iter().map(|one| Desired { tls: tls.clone(), ..Desired::from(one) }).collect();
        self.reconcile(variant, &Origin::Started, &desired);
        for one in wanted.iter().filter(|one| one.draining) {
            variant.set_draining(&one.id, true);
        }
    }
}

impl ManagedEndpoint {
    fn check(&self) -> Result<(), PutError> {
        let components = self.components.as_deref().unwrap_or_default();
        for component in components {
            let ComponentKind::Adapter { base, .. } = &component.kind else { continue };
            let is_base =
                |other: &ManagedComponent| other.name == *base && matches!(other.kind, ComponentKind::Base { .. });
            if !components.iter().any(is_base) {
                return Err(PutError::NoBase { adapter: component.name.clone(), base: base.clone() });
            }
        }
        Ok(())
    }
}

impl ManagedVariant {
    fn plan(&self) -> isotherm_config::Variant {
        isotherm_config::Variant {
            name: self.name.clone(),
            weight: self.weight,
            routing: self.routing,
            health: self.health.clone(),
            engine_metrics: EngineMetrics::default(),
            instances: Vec::new(),
        }
    }
}

impl ManagedInstance {
    /// An instance of weight 1 without a bound.
    pub fn new(id: impl Into<InstanceId>, url: InstanceUrl) -> ManagedInstance {
        ManagedInstance {
            id: id.into(),
            host: None,
            url,
            api_key: None,
            weight: Weight::ONE,
            max_in_flight: None,
            draining: false,
        }
    }
}

impl From<&ManagedInstance> for Desired {
    fn from(wanted: &ManagedInstance) -> Desired {
        let ManagedInstance { id, host, url, api_key, weight, max_in_flight, draining: _ } = wanted.clone();
        Desired { id, host, url, weight, max_in_flight, api_key, tls: None }
    }
}

impl ManagedComponent {
    /// The adapter, where its base is among these.
    fn adapter_on(&self, bases: &[Arc<Component>]) -> Option<Arc<Component>> {
        let ComponentKind::Adapter { base, copies } = &self.kind else { return None };
        let base = bases.iter().find(|component| *component.name == *base.as_str())?;
        Some(Arc::new(Component {
            name: self.name.shared(),
            production_variant: Arc::clone(&base.production_variant),
            variant: Arc::clone(&base.variant),
            adapter: Some(Adapter { copies: copies.clone() }),
        }))
    }
}
