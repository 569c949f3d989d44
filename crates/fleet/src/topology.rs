//! The immutable snapshot of what is served: endpoints, their variants, and which models they list.

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use isotherm_core::{ModelHash, Time};

use crate::directory::Directory;
use crate::{Location, Model, Variant};

/// Endpoints and variants at one moment. Instances and their counters live in the variants and are shared by all
/// snapshots, so a request may keep the snapshot that it began with.
#[derive(Debug, Default)]
pub struct Topology {
    endpoints: Vec<Arc<Endpoint>>,
    by_name: HashMap<Arc<str>, usize>,
    directory: Directory,
}

/// What a client calls by name.
#[derive(Debug)]
pub struct Endpoint {
    name: Arc<str>,
    variants: Vec<TrafficShare>,
}

/// A variant and its share of the endpoint's traffic.
#[derive(Debug, Clone)]
pub struct TrafficShare {
    /// The variant.
    pub variant: Arc<Variant>,
    /// Its share relative to the others: finite, 0 for none.
    pub weight: f64,
}

/// Which endpoint serves a model.
#[derive(Debug, Clone, Copy)]
pub enum Serving<'t> {
    /// This one.
    Endpoint(&'t Arc<Endpoint>),
    /// None: every instance lists its models, and none lists this one.
    Nowhere,
    /// There is no endpoint at all.
    NoEndpoint,
}

impl Topology {
    pub(crate) fn new(endpoints: Vec<Arc<Endpoint>>, directory: Directory) -> Topology {
        let by_name = endpoints.iter().enumerate().map(|(index, endpoint)| (endpoint.name.clone(), index)).collect();
        Topology { endpoints, by_name, directory }
    }

    /// Every endpoint, in the order of the configuration.
    pub fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.endpoints
    }

    /// The endpoint of that name.
    pub fn endpoint(&self, name: &str) -> Option<&Arc<Endpoint>> {
        self.by_name.get(name).map(|&index| &self.endpoints[index])
    }

    /// The endpoint that serves what names none: the first.
    pub fn default_endpoint(&self) -> Option<&Arc<Endpoint>> {
        self.endpoints.first()
    }

    /// The endpoint for a request that names a model but no endpoint.
    ///
    /// The default endpoint if it lists the model, else the first other that lists it, else the first that has
    /// instances which do not say what they serve. Without a model, the default endpoint.
    pub fn serving(&self, model: Option<ModelHash>) -> Serving<'_> {
        let Some(default) = self.endpoints.first() else { return Serving::NoEndpoint };
        let Some(model) = model else { return Serving::Endpoint(default) };
        match self.directory.endpoint_of(model) {
            Some(index) => self.endpoints.get(index).map_or(Serving::Nowhere, Serving::Endpoint),
            None => Serving::Nowhere,
        }
    }

    /// The variant at a location, if it is still there.
    pub fn variant_at(&self, location: &Location) -> Option<&Arc<Variant>> {
        self.endpoint(&location.endpoint)?.variant(&location.variant)
    }

    /// Every variant of every endpoint.
    pub fn variants(&self) -> impl Iterator<Item = &Arc<Variant>> {
        self.endpoints.iter().flat_map(|endpoint| endpoint.variants.iter().map(|share| &share.variant))
    }

    /// The models that the instances list; of two descriptions of one model, the first.
    ///
    /// Instances that are down keep what they last listed.
    pub fn models(&self) -> Vec<Arc<Model>> {
        let mut seen = HashSet::new();
        let listings = self.variants().flat_map(|variant| variant.listings()).flatten();
        let models = listings.flat_map(|listing| listing.models().to_vec());
        models.filter(|model| seen.insert(ModelHash::of(model.id()))).collect()
    }

    /// Whether a request could be placed somewhere.
    pub fn has_eligible(&self, now: Time) -> bool {
        self.variants().any(|variant| variant.has_eligible(now))
    }
}

impl Endpoint {
    pub(crate) fn new(name: Arc<str>, variants: Vec<TrafficShare>) -> Endpoint {
        Endpoint { name, variants }
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its variants, in the order of the configuration.
    pub fn variants(&self) -> &[TrafficShare] {
        &self.variants
    }

    /// The variant of that name.
    pub fn variant(&self, name: &str) -> Option<&Arc<Variant>> {
        self.variants.iter().map(|share| &share.variant).find(|variant| **variant.name() == *name)
    }

    /// Picks a variant by traffic share; `random` is any number, evenly distributed over all of `u64`.
    ///
    /// `None` when there is no variant, or all shares are 0. Looks at nothing but the shares, as SageMaker does: an
    /// endpoint's variants are taken to serve the same models, and one that is down gets its share of the errors.
    pub fn pick_variant(&self, random: u64) -> Option<&Arc<Variant>> {
        let total: f64 = self.variants.iter().map(|share| share.weight).sum();
        let mut left = (random >> 11) as f64 * (1.0 / (1u64 << 53) as f64) * total;
        let mut last = None;
        for share in self.variants.iter().filter(|share| share.weight > 0.0) {
            last = Some(&share.variant);
            left -= share.weight;
            if left < 0.0 {
                break;
            }
        }
        // Rounding may leave a crumb after the last one: it is the last one's.
        last
    }

    /// Whether a request could be placed in one of its variants.
    pub fn has_eligible(&self, now: Time) -> bool {
        self.variants.iter().any(|share| share.variant.has_eligible(now))
    }
}
