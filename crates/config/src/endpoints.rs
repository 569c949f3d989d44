//! `endpoints`: what clients call by name, and the variants behind it.

use std::collections::HashMap;

use isotherm_core::Routing;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::context::Context;
use crate::engine_metrics::EngineMetrics;
use crate::health::Health;
use crate::instances::{self, InstanceElement, InstanceEntry};
use crate::name::Name;
use crate::problem::Place;
use crate::routing::RoutingElement;
use crate::value::number;
use crate::yaml::Located;

/// What a client calls by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// Unique among the endpoints.
    pub name: Name,
    /// At least one, and at least one with a weight above 0.
    pub variants: Vec<Variant>,
}

/// A set of instances with one routing configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Unique within the endpoint.
    pub name: Name,
    /// The share of the endpoint's traffic, relative to the other variants.
    pub weight: TrafficWeight,
    /// How an instance is chosen.
    pub routing: Routing,
    /// How instances are probed.
    pub health: Health,
    /// How their engines' figures are read.
    pub engine_metrics: EngineMetrics,
    /// The instances, or where to find them. May be empty: instances can be added while the router runs.
    pub instances: Vec<InstanceEntry>,
}

/// The share of an endpoint's traffic that a variant gets: a finite number from 0, 1 by default.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct TrafficWeight(f64);

impl TrafficWeight {
    /// A weight, if the number can be one.
    pub fn new(weight: f64) -> Result<TrafficWeight, TrafficWeightError> {
        if weight.is_finite() && weight >= 0.0 { Ok(TrafficWeight(weight)) } else { Err(TrafficWeightError(weight)) }
    }

    /// The weight as a number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Default for TrafficWeight {
    fn default() -> TrafficWeight {
        TrafficWeight(1.0)
    }
}

/// A number that is no share of traffic.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a variant's weight is a number from 0, not {0}")]
pub struct TrafficWeightError(f64);

/// What a client calls by name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Endpoint")]
pub(crate) struct EndpointElement {
    /// The name in `/endpoints/NAME/…` and in metrics. The first endpoint is the default one.
    name: Located<Name>,
    /// At least one.
    #[schemars(length(min = 1))]
    pub(crate) variants: Vec<Located<VariantElement>>,
}

/// A set of instances with one routing configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Variant")]
pub(crate) struct VariantElement {
    /// The name in metrics and in the header by which a client asks for the variant.
    name: Located<Name>,
    /// The share of the endpoint's traffic, relative to the other variants.
    #[serde(default, deserialize_with = "traffic_weight")]
    #[schemars(with = "f64", extend("minimum" = 0, "default" = 1))]
    weight: TrafficWeight,
    /// How an instance is chosen.
    #[serde(default)]
    pub(crate) routing: RoutingElement,
    /// How instances are probed.
    #[serde(default)]
    health: Health,
    /// How their engines' figures are read.
    #[serde(default)]
    engine_metrics: EngineMetrics,
    /// The replicas of the engine. May be empty: instances can be added while the router runs.
    instances: Vec<Located<InstanceElement>>,
}

fn traffic_weight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TrafficWeight, D::Error> {
    number(deserializer, TrafficWeight::new)
}

/// The endpoints; what does not fit together is noted as problems.
pub(crate) fn endpoints(elements: Vec<Located<EndpointElement>>, context: &mut Context<'_>) -> Vec<Endpoint> {
    let mut names = HashMap::new();
    elements
        .into_iter()
        .map(|Located { value: element, place }| {
            unique("endpoint", &element.name, &mut names, context);
            let variants = variants(element.variants, context);
            let name = element.name.value;
            if variants.is_empty() {
                context.refuse(place, format!("endpoint {name} needs at least one variant"));
            } else if variants.iter().all(|variant| variant.weight.get() == 0.0) {
                context.refuse(place, format!("endpoint {name}: at least one variant needs a weight above 0"));
            }
            Endpoint { name, variants }
        })
        .collect()
}

fn variants(elements: Vec<Located<VariantElement>>, context: &mut Context<'_>) -> Vec<Variant> {
    let mut names = HashMap::new();
    elements
        .into_iter()
        .map(|Located { value: element, .. }| {
            unique("variant", &element.name, &mut names, context);
            Variant {
                name: element.name.value,
                weight: element.weight,
                routing: element.routing.into(),
                health: element.health,
                engine_metrics: element.engine_metrics,
                instances: instances::entries(element.instances, context),
            }
        })
        .collect()
}

fn unique(what: &str, name: &Located<Name>, seen: &mut HashMap<Name, Place>, context: &mut Context<'_>) {
    if let Some(first) = seen.get(&name.value) {
        let first = context.at(*first);
        context.refuse(name.place, format!("{what} {} is given a second time; the first is at {first}", name.value));
    } else {
        seen.insert(name.value.clone(), name.place);
    }
}
