//! What the fleet has counted, by variant, inference component and instance.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use isotherm_core::{Availability, Time};
use isotherm_fleet::{Component, Endpoint, Fleet, InstanceNow, Machine, Variant};
use isotherm_telemetry::{InstanceMetrics, InvocationFigures, VariantMetrics};

use crate::{Dimension, Resolution};

/// For how long figures of an engine count that were read and not read again.
const FRESH: Duration = Duration::from_secs(60);

/// How one place stands.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) place: Place,
    /// Where it counts as well.
    pub(super) within: Option<Place>,
    pub(super) counts: Counts,
    /// How many instances, or copies, take requests.
    pub(super) instances: usize,
    /// Requests under way on each of these, with its part of those that wait; of none where components lie on them.
    pub(super) in_flight: Vec<f64>,
    /// The machines under these, of which their engines tell.
    pub(super) machines: Vec<Machine>,
}

/// Where the counts of a place are.
#[derive(Debug, Clone)]
pub(super) enum Counts {
    Variant(Arc<VariantMetrics>),
    Instance(Arc<InstanceMetrics>),
}

impl Counts {
    /// The counts from the beginning on: some thousand numbers, so not to be asked for every second.
    pub(super) fn figures(&self) -> InvocationFigures {
        match self {
            Counts::Variant(metrics) => metrics.invocations().figures(),
            Counts::Instance(metrics) => metrics.invocations().figures(),
        }
    }
}

/// Where something is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) account: Arc<str>,
    pub(super) kind: Kind,
}

/// What it is counted of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A variant as a whole.
    Variant { endpoint: Arc<str>, variant: Arc<str> },
    /// An inference component, in all its copies.
    Component { component: Arc<str> },
    /// One instance of a variant.
    Instance { endpoint: Arc<str>, variant: Arc<str>, instance: Arc<str> },
    /// One copy of an inference component.
    Copy { endpoint: Arc<str>, variant: Arc<str>, component: Arc<str>, instance: Arc<str>, copy: Arc<str> },
}

impl Place {
    pub(super) fn dimensions(&self) -> Vec<Dimension> {
        match &self.kind {
            Kind::Variant { endpoint, variant } => {
                vec![Dimension::new("EndpointName", endpoint), Dimension::new("VariantName", variant)]
            }
            Kind::Component { component } => vec![Dimension::new("InferenceComponentName", component)],
            Kind::Instance { endpoint, variant, instance } => vec![
                Dimension::new("EndpointName", endpoint),
                Dimension::new("VariantName", variant),
                Dimension::new("InstanceId", instance),
            ],
            Kind::Copy { endpoint, variant, component, instance, copy } => vec![
                Dimension::new("EndpointName", endpoint),
                Dimension::new("VariantName", variant),
                Dimension::new("InferenceComponentName", component),
                Dimension::new("InstanceId", instance),
                Dimension::new("ContainerId", copy),
            ],
        }
    }

    /// The dimensions of what machines are used, where a copy's are fewer.
    pub(super) fn dimensions_of_machines(&self) -> Vec<Dimension> {
        let mut dimensions = self.dimensions();
        if let Kind::Copy { .. } = self.kind {
            dimensions.retain(|dimension| !["EndpointName", "VariantName"].contains(&&*dimension.name));
        }
        dimensions
    }

    /// Variants and components are scaled by, so they are kept by ten seconds; instances are many.
    pub(super) fn resolution(&self) -> Resolution {
        match self.kind {
            Kind::Variant { .. } | Kind::Component { .. } => Resolution::High,
            Kind::Instance { .. } | Kind::Copy { .. } => Resolution::Standard,
        }
    }
}

/// How all places of a fleet stand. `account` owns the endpoints that belong to no other.
pub(super) fn readings(fleet: &Fleet, account: &Arc<str>) -> Vec<Reading> {
    let now = fleet.clock().now();
    let topology = fleet.topology();
    let endpoints = topology.endpoints().iter();
    endpoints.flat_map(|endpoint| OfEndpoint::of(endpoint, account, now).readings()).collect()
}

/// An endpoint, its own name, and whose it is.
struct OfEndpoint<'e> {
    endpoint: &'e Endpoint,
    account: Arc<str>,
    name: Arc<str>,
    now: Time,
}

impl<'e> OfEndpoint<'e> {
    /// The endpoints of other accounts than the router's are called `ACCOUNT/NAME`.
    fn of(endpoint: &'e Endpoint, account: &Arc<str>, now: Time) -> OfEndpoint<'e> {
        let (account, name) = match endpoint.name().split_once('/') {
            Some((account, name)) => (account.into(), name.into()),
            None => (Arc::clone(account), Arc::clone(endpoint.name())),
        };
        OfEndpoint { endpoint, account, name, now }
    }

    fn readings(&self) -> Vec<Reading> {
        let mut by_place = BTreeMap::new();
        for share in self.endpoint.variants().iter().chain(self.endpoint.shadow()) {
            self.read_variant(&mut by_place, &share.variant);
        }
        // An adapter's requests are counted with its base's.
        for component in self.endpoint.components().iter().filter(|component| component.adapter.is_none()) {
            self.read_component(&mut by_place, component);
        }
        by_place.into_values().collect()
    }

    /// A variant and its instances. While a deployment runs there are two of one name, which have one set of counts.
    fn read_variant(&self, readings: &mut BTreeMap<Place, Reading>, variant: &Variant) {
        let instances = variant.instances(self.now);
        let place = self.variant(variant.name());
        let mut reading = reading(place.clone(), None, variant, &instances);
        if self.endpoint.has_components() {
            reading.in_flight.clear();
        }
        match readings.get_mut(&place) {
            Some(other) => {
                other.in_flight.extend(reading.in_flight);
                other.machines.extend(reading.machines);
                other.instances += reading.instances;
            }
            None => drop(readings.insert(place, reading)),
        }
        for one in &instances {
            let (endpoint, variant) = (Arc::clone(&self.name), Arc::clone(variant.name()));
            let kind = Kind::Instance { endpoint, variant, instance: one.instance.id().as_str().into() };
            let place = self.place(kind);
            readings.insert(place.clone(), reading_of_one(place, one));
        }
    }

    /// A component in its copies; its requests are those of the variant on whose instances it lies, too.
    fn read_component(&self, readings: &mut BTreeMap<Place, Reading>, component: &Component) {
        let place = self.place(Kind::Component { component: Arc::clone(&component.name) });
        let within = self.variant(&component.production_variant);
        let copies = component.variant.instances(self.now);
        readings.insert(place.clone(), reading(place, Some(within), &component.variant, &copies));
        for one in &copies {
            let Some(host) = one.instance.host() else { continue };
            let place = self.place(Kind::Copy {
                endpoint: Arc::clone(&self.name),
                variant: Arc::clone(&component.production_variant),
                component: Arc::clone(&component.name),
                instance: host.as_str().into(),
                copy: one.instance.id().as_str().into(),
            });
            readings.insert(place.clone(), reading_of_one(place, one));
        }
    }

    fn variant(&self, variant: &Arc<str>) -> Place {
        self.place(Kind::Variant { endpoint: Arc::clone(&self.name), variant: Arc::clone(variant) })
    }

    fn place(&self, kind: Kind) -> Place {
        Place { account: Arc::clone(&self.account), kind }
    }
}

/// One instance, or one copy.
fn reading_of_one(place: Place, one: &InstanceNow) -> Reading {
    let counts = Counts::Instance(Arc::clone(one.instance.metrics()));
    let machines = machine(one).into_iter().collect();
    Reading { place, within: None, counts, instances: 1, in_flight: vec![f64::from(one.in_flight)], machines }
}

/// The machine under an instance, if its engine told of it lately.
fn machine(one: &InstanceNow) -> Option<Machine> {
    let (figures, read) = one.instance.engine().figures?;
    let is_fresh = read.elapsed().is_ok_and(|age| age < FRESH);
    (is_fresh && figures.machine != Machine::default()).then_some(figures.machine)
}

fn reading(place: Place, within: Option<Place>, variant: &Variant, instances: &[InstanceNow]) -> Reading {
    let serving = |one: &&InstanceNow| matches!(one.availability, Availability::Up | Availability::Ejected { .. });
    let serving: Vec<&InstanceNow> = instances.iter().filter(serving).collect();
    // What waits fits into memory, so it is a small number.
    let waiting = variant.metrics().waiting().get() as f64 / serving.len().max(1) as f64;
    let in_flight = serving.iter().map(|one| f64::from(one.in_flight) + waiting).collect();
    let counts = Counts::Variant(Arc::clone(variant.metrics()));
    let machines = serving.iter().filter_map(|one| machine(one)).collect();
    Reading { place, within, counts, instances: serving.len(), in_flight, machines }
}
