//! Endpoints as a control plane puts them: variants, shadows, components.

use isotherm_config::{Health, TrafficWeight};
use isotherm_core::Routing;
use isotherm_fleet::{ComponentKind, ManagedComponent, ManagedEndpoint, ManagedInstance, ManagedVariant};

use crate::origin::Origin;

/// An instance of that id, which is an origin.
pub(crate) fn instance(id: &str, origin: &Origin) -> ManagedInstance {
    ManagedInstance::new(id, origin.url().parse().unwrap())
}

/// A copy on a host.
pub(crate) fn copy(id: &str, host: &str, origin: &Origin) -> ManagedInstance {
    ManagedInstance { host: Some(host.into()), ..instance(id, origin) }
}

/// A variant with this weight.
pub(crate) fn variant(name: &str, weight: f64, instances: Vec<ManagedInstance>) -> ManagedVariant {
    ManagedVariant {
        name: name.parse().unwrap(),
        revision: 1,
        weight: TrafficWeight::new(weight).unwrap(),
        routing: Routing::default(),
        health: Health::default(),
        instances,
    }
}

/// An endpoint of this name with these variants.
pub(crate) fn endpoint(name: &str, variants: Vec<ManagedVariant>) -> ManagedEndpoint {
    ManagedEndpoint { name: name.into(), variants, shadow: None, components: None, async_output: None }
}

/// A component with copies of its own, on the instances of `AllTraffic`.
pub(crate) fn base(name: &str, copies: Vec<ManagedInstance>) -> ManagedComponent {
    component(name, ComponentKind::Base { routing: Routing::default(), health: Health::default(), copies })
}

/// An adapter on some copies of a base.
pub(crate) fn adapter(name: &str, base: &str, copies: &[&str]) -> ManagedComponent {
    let copies = copies.iter().map(|&copy| copy.into()).collect();
    component(name, ComponentKind::Adapter { base: base.parse().unwrap(), copies })
}

fn component(name: &str, kind: ComponentKind) -> ManagedComponent {
    ManagedComponent { name: name.parse().unwrap(), production_variant: "AllTraffic".parse().unwrap(), kind }
}
