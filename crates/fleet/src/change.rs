//! Changes of the fleet while it serves, as the admin API makes them.

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;

use std::num::NonZeroU32;
use std::sync::Arc;

use isotherm_config::{ApiKey, InstanceUrl};
use isotherm_core::{InstanceId, Routing, Weight};
use serde::Serialize;
use tracing::info;

use crate::reconcile::Desired;
use crate::{Fleet, InstanceNow, InstanceStatus, Origin, Owner, Topology, Variant};

/// An instance to add.
#[derive(Debug, Clone)]
pub struct NewInstance {
    /// The endpoint; the default one where none is named.
    pub endpoint: Option<String>,
    /// The variant; may be left out where the endpoint has only one.
    pub variant: Option<String>,
    /// Its stable name; the normalised URL where none is given.
    pub id: Option<InstanceId>,
    /// Where it is reached.
    pub url: InstanceUrl,
    /// Its share relative to the others.
    pub weight: Weight,
    /// The most requests that this router keeps in flight on it.
    pub max_in_flight: Option<NonZeroU32>,
    /// The key that the engine wants.
    pub api_key: Option<ApiKey>,
    /// Who brings it in.
    pub origin: Origin,
}

/// Names an instance, with as much of its place as is needed to tell it from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceName<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its endpoint; any where none is named.
    pub endpoint: Option<&'a str>,
    /// Its variant; any where none is named.
    pub variant: Option<&'a str>,
}

/// Whether an instance may be removed that is the last of its variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfLast {
    /// It stays, with [`ChangeError::LastInstance`].
    Keep,
    /// It goes, and the variant answers 503.
    Remove,
}

/// Why a change was refused. Serialises as its kind and values, for whoever says it in another language.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(tag = "kind", content = "values", rename_all = "snake_case")]
pub enum ChangeError {
    /// No endpoint has that name.
    #[error("there is no endpoint {name:?}; there are: {}", known.join(", "))]
    UnknownEndpoint {
        /// The name that was asked for.
        name: String,
        /// The names of those that there are.
        known: Vec<String>,
    },
    /// No variant of the endpoint has that name.
    #[error("endpoint {endpoint:?} has no variant {name:?}; it has: {}", known.join(", "))]
    UnknownVariant {
        /// The endpoint.
        endpoint: String,
        /// The name that was asked for.
        name: String,
        /// The names of those that there are.
        known: Vec<String>,
    },
    /// The endpoint has several variants, and none was named.
    #[error("endpoint {endpoint:?} has more than one variant: name one of {}", known.join(", "))]
    VariantNotNamed {
        /// The endpoint.
        endpoint: String,
        /// The names of its variants.
        known: Vec<String>,
    },
    /// No instance has that id.
    #[error("there is no instance {id:?} there")]
    UnknownInstance {
        /// The id that was asked for.
        id: String,
    },
    /// Instances of several variants have that id.
    #[error("instance {id:?} is in {}: name the endpoint and the variant", places.join(" and in "))]
    AmbiguousInstance {
        /// The id that was asked for.
        id: String,
        /// Where it was found, each as `endpoint/variant`.
        places: Vec<String>,
    },
    /// The variant has an instance of that id, or with that URL, already.
    #[error("{url} is there already as instance {id:?}")]
    Duplicate {
        /// The id of the one that is there.
        id: String,
        /// The URL of the one that is there.
        url: String,
    },
    /// The endpoint is a control plane's.
    #[error("endpoint {endpoint:?} is managed: change its instances by UpdateEndpointWeightsAndCapacities")]
    Managed {
        /// The endpoint.
        endpoint: String,
    },
    /// The endpoint is a control plane's, and so is how it routes.
    #[error("endpoint {endpoint:?} is managed: its RoutingConfig says how it routes; change it by UpdateEndpoint")]
    ManagedRouting {
        /// The endpoint.
        endpoint: String,
    },
    /// It is the variant's last instance.
    #[error(
        "{id:?} is the last instance of variant {variant:?}: without it nothing would answer; add another one first"
    )]
    LastInstance {
        /// The instance.
        id: String,
        /// Its variant.
        variant: String,
    },
}

impl Fleet {
    /// Adds an instance; it may be chosen at once.
    pub fn add_instance(&self, new: NewInstance) -> Result<InstanceStatus, ChangeError> {
        self.write(|writer, topology| {
            let variant = find_variant(topology, new.endpoint.as_deref(), new.variant.as_deref())?;
            refuse_if_managed(topology, variant)?;
            let id = new.id.unwrap_or_else(|| InstanceId::new(new.url.to_string()));
            let present = variant.instances(self.clock().now());
            let same = |one: &&InstanceNow| *one.instance.id() == id || one.instance.address().is_at(&new.url);
            if let Some(one) = present.iter().find(same) {
                let (id, url) = (one.instance.id().to_string(), one.instance.address().url().to_string());
                return Err(ChangeError::Duplicate { id, url });
            }
            let (url, api_key) = (new.url, new.api_key);
            let (weight, max_in_flight, tls) = (new.weight, new.max_in_flight, writer.instances_tls.clone());
            let desired = Desired { id, host: None, url, weight, max_in_flight, api_key, tls };
            desired.add_to(variant, &new.origin);
            writer.withdrawn.remove(&variant.location_of(&desired.id));
            self.publish(topology.endpoints().to_vec());
            let name = InstanceName {
                id: desired.id.as_str(),
                endpoint: Some(variant.endpoint()),
                variant: Some(variant.name()),
            };
            find_instance(topology, name, self.clock().now()).map(|(_, one)| self.status(&one))
        })
    }

    /// Stops sending new requests to an instance, or resumes it. What it has in flight goes on.
    pub fn set_draining(&self, name: InstanceName<'_>, draining: bool) -> Result<InstanceStatus, ChangeError> {
        self.write(|_, topology| {
            let (variant, one) = find_instance(topology, name, self.clock().now())?;
            variant.set_draining(one.instance.id(), draining);
            find_instance(topology, name, self.clock().now()).map(|(_, one)| self.status(&one))
        })
    }

    /// Removes an instance; what it has in flight goes on. Returns how it stood.
    ///
    /// One that the file or a DNS name lists stays away until it was not listed for once, or is added again.
    pub fn remove_instance(&self, name: InstanceName<'_>, if_last: IfLast) -> Result<InstanceStatus, ChangeError> {
        self.write(|writer, topology| {
            let now = self.clock().now();
            let (variant, one) = find_instance(topology, name, now)?;
            refuse_if_managed(topology, variant)?;
            if if_last == IfLast::Keep && variant.instances(now).len() == 1 {
                let (id, variant) = (one.instance.id().to_string(), variant.name().to_string());
                return Err(ChangeError::LastInstance { id, variant });
            }
            variant.remove(one.instance.id(), "removed by the admin API");
            match one.instance.origin() {
                origin @ (Origin::File | Origin::Dns(_)) => {
                    writer.withdrawn.insert((**one.instance.location()).clone(), origin.clone());
                }
                Origin::Api | Origin::Started => {}
            }
            self.publish(topology.endpoints().to_vec());
            Ok(self.status(&one))
        })
    }

    /// Changes how a variant chooses an instance, until the file is read again or the process ends. Returns what is in
    /// force then.
    pub fn set_routing(
        &self,
        endpoint: &str,
        variant: &str,
        change: impl FnOnce(Routing) -> Routing,
    ) -> Result<Routing, ChangeError> {
        self.write(|_, topology| {
            let variant = find_variant(topology, Some(endpoint), Some(variant))?;
            if refuse_if_managed(topology, variant).is_err() {
                return Err(ChangeError::ManagedRouting { endpoint: endpoint.to_owned() });
            }
            let plan = variant.plan();
            let routing = change(plan.routing);
            variant.set_plan(isotherm_config::Variant { routing, ..(*plan).clone() });
            info!(endpoint, variant = %variant.name(), strategy = %routing.strategy.name(), "strategy changed by the admin API");
            Ok(routing)
        })
    }

    fn status(&self, one: &InstanceNow) -> InstanceStatus {
        InstanceStatus::of(one, self.clock().now())
    }
}

fn refuse_if_managed(topology: &Topology, variant: &Variant) -> Result<(), ChangeError> {
    match topology.endpoint(variant.endpoint()) {
        Some(endpoint) if endpoint.owner() == Owner::Managed => {
            Err(ChangeError::Managed { endpoint: endpoint.name().to_string() })
        }
        _ => Ok(()),
    }
}

fn find_variant<'t>(
    topology: &'t Topology,
    endpoint: Option<&str>,
    variant: Option<&str>,
) -> Result<&'t Arc<Variant>, ChangeError> {
    let found = match endpoint {
        Some(name) => topology.endpoint(name),
        None => topology.default_endpoint(),
    };
    let endpoint = found.ok_or_else(|| ChangeError::UnknownEndpoint {
        name: endpoint.unwrap_or_default().to_owned(),
        known: topology.endpoints().iter().map(|endpoint| endpoint.name().to_string()).collect(),
    })?;
    let known = || endpoint.variants().iter().map(|share| share.variant.name().to_string()).collect();
    match (variant, endpoint.variants()) {
        (Some(name), _) => endpoint.variant(name).ok_or_else(|| ChangeError::UnknownVariant {
            endpoint: endpoint.name().to_string(),
            name: name.to_owned(),
            known: known(),
        }),
        (None, [only]) => Ok(&only.variant),
        (None, _) => Err(ChangeError::VariantNotNamed { endpoint: endpoint.name().to_string(), known: known() }),
    }
}

fn find_instance<'t>(
    topology: &'t Topology,
    name: InstanceName<'_>,
    now: isotherm_core::Time,
) -> Result<(&'t Arc<Variant>, InstanceNow), ChangeError> {
    let is_there = |variant: &&Arc<Variant>| {
        name.endpoint.is_none_or(|endpoint| **variant.endpoint() == *endpoint)
            && name.variant.is_none_or(|wanted| **variant.name() == *wanted)
    };
    let instances = topology.variants().filter(is_there).flat_map(|variant| {
        let instances = variant.instances(now).into_iter();
        instances.filter(|one| one.instance.id().as_str() == name.id).map(move |one| (variant, one))
    });
    let mut found: Vec<_> = instances.collect();
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(ChangeError::UnknownInstance { id: name.id.to_owned() }),
        (Some(last), false) => {
            let place = |variant: &Variant| format!("{}/{}", variant.endpoint(), variant.name());
            let places = found.iter().chain([&last]).map(|(variant, _)| place(variant)).collect();
            Err(ChangeError::AmbiguousInstance { id: name.id.to_owned(), places })
        }
    }
}
