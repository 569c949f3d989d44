//! The immutable snapshot of what is served: endpoints, their variants, and which models they list.

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use isotherm_core::{InstanceId, ModelHash, Time};

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
    owner: Owner,
    variants: Vec<TrafficShare>,
    shadow: Option<TrafficShare>,
    /// Present where the endpoint's instances hold inference components, even before there is one.
    components: Option<Vec<Arc<Component>>>,
    async_output: Option<AsyncOutput>,
}

/// Where answers of asynchronous invocations go, as `s3://BUCKET/PREFIX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsyncOutput {
    /// Below this, answers.
    pub answers: String,
    /// Below this, what is told of failures; `None`: beside the answers.
    pub failures: Option<String>,
}

/// Who decides what an endpoint consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The configuration file.
    File,
    /// A control plane, by [`Fleet::put_endpoint`](crate::Fleet::put_endpoint).
    Managed,
}

/// A model that lies on the instances of an endpoint, in any number of copies.
#[derive(Debug, Clone)]
pub struct Component {
    /// Its name.
    pub name: Arc<str>,
    /// The name of the production variant on whose instances it lies.
    pub production_variant: Arc<str>,
    /// What its requests are routed by: a variant whose instances are its copies. An adapter's is its base's.
    pub variant: Arc<Variant>,
    /// What makes it an adapter on top of another component.
    pub adapter: Option<Adapter>,
}

/// Where the adapter of a component is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapter {
    /// The copies of the base component that hold it: nowhere else can its requests be served.
    pub copies: Vec<InstanceId>,
}

/// A variant and its share of the endpoint's traffic.
#[derive(Debug, Clone)]
pub struct TrafficShare {
    /// The variant.
    pub variant: Arc<Variant>,
    /// Its share relative to the others: finite, 0 for none. A shadow's is relative to all that is not shadow.
    pub weight: f64,
}

/// Which endpoint serves a model.
#[derive(Debug, Clone, Copy)]
pub enum Serving<'t> {
    /// This one.
    Endpoint(&'t Arc<Endpoint>),
    /// None: every instance of the account lists its models, and none lists this one.
    Nowhere,
    /// The account has no endpoint at all.
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

    /// The endpoint for a request that names a model but no endpoint, among those of an account ([`Endpoint::account`]).
    ///
    /// The account's first endpoint if it lists the model, else the first other that lists it, else the first that has
    /// instances which do not say what they serve. Without a model, the first.
    pub fn serving(&self, account: Option<&str>, model: Option<ModelHash>) -> Serving<'_> {
        let Some(listed) = self.directory.of_account(account) else { return Serving::NoEndpoint };
        let endpoint = listed.endpoint_of(model).and_then(|index| self.endpoints.get(index));
        endpoint.map_or(Serving::Nowhere, Serving::Endpoint)
    }

    /// The variant at a location, if it is still there: of several of that name the one that has the instance.
    pub fn variant_at(&self, location: &Location) -> Option<&Arc<Variant>> {
        let of_that_name = || {
            let all = self.endpoint(&location.endpoint).into_iter().flat_map(|endpoint| endpoint.all_variants());
            all.filter(|variant| **variant.name() == *location.variant)
        };
        let mut others = of_that_name();
        let first = others.next()?;
        if others.next().is_none() {
            return Some(first);
        }
        of_that_name().find(|variant| variant.has(&location.instance)).or(Some(first))
    }

    /// Every variant of every endpoint, those of shadows and of inference components included.
    pub fn variants(&self) -> impl Iterator<Item = &Arc<Variant>> {
        self.endpoints.iter().flat_map(|endpoint| endpoint.all_variants())
    }

    /// The models that the instances of these endpoints list; of two descriptions of one model, the first.
    ///
    /// Instances that are down keep what they last listed.
    pub fn models(&self, of: impl Fn(&Endpoint) -> bool) -> Vec<Arc<Model>> {
        let endpoints = self.endpoints.iter().filter(|endpoint| of(endpoint));
        distinct(endpoints.flat_map(|endpoint| endpoint.variants()).map(|share| &share.variant))
    }

    /// Whether a request could be placed somewhere.
    pub fn has_eligible(&self, now: Time) -> bool {
        self.variants().any(|variant| variant.has_eligible(now))
    }
}

impl Endpoint {
    /// An endpoint of the file.
    pub(crate) fn of_file(name: Arc<str>, variants: Vec<TrafficShare>) -> Endpoint {
        Endpoint { name, owner: Owner::File, variants, shadow: None, components: None, async_output: None }
    }

    /// An endpoint of a control plane.
    pub(crate) fn managed(
        name: Arc<str>,
        variants: Vec<TrafficShare>,
        shadow: Option<TrafficShare>,
        components: Option<Vec<Arc<Component>>>,
        async_output: Option<AsyncOutput>,
    ) -> Endpoint {
        Endpoint { name, owner: Owner::Managed, variants, shadow, components, async_output }
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The account that it belongs to; `None` for the router's own. Names of others' endpoints begin with theirs.
    pub fn account(&self) -> Option<&str> {
        self.name.split_once('/').map(|(account, _)| account)
    }

    /// Who decides what it consists of.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Its production variants, in the order of the configuration.
    ///
    /// While a deployment shifts traffic two of them have the same name: the one that goes, and the one that comes.
    pub fn variants(&self) -> &[TrafficShare] {
        &self.variants
    }

    /// The variant that gets a copy of the requests, and whose answers nobody sees.
    pub fn shadow(&self) -> Option<&TrafficShare> {
        self.shadow.as_ref()
    }

    /// Where answers of asynchronous invocations go; `None` for the router's own place.
    pub fn async_output(&self) -> Option<&AsyncOutput> {
        self.async_output.as_ref()
    }

    /// Whether requests have to name an inference component: its instances hold nothing else.
    pub fn has_components(&self) -> bool {
        self.components.is_some()
    }

    /// Its inference components.
    pub fn components(&self) -> &[Arc<Component>] {
        self.components.as_deref().unwrap_or_default()
    }

    /// The inference component of that name.
    pub fn component(&self, name: &str) -> Option<&Arc<Component>> {
        self.components().iter().find(|component| *component.name == *name)
    }

    /// The first production variant of that name.
    pub fn variant(&self, name: &str) -> Option<&Arc<Variant>> {
        self.variants.iter().map(|share| &share.variant).find(|variant| **variant.name() == *name)
    }

    /// Picks among the production variants of that name by traffic share, as [`Endpoint::pick_variant`] does.
    pub fn pick_variant_named(&self, name: &str, random: u64) -> Option<&Arc<Variant>> {
        let of_that_name = || self.variants.iter().filter(|share| **share.variant.name() == *name);
        // Who asks for a variant by its name gets it even where its share is 0.
        pick(of_that_name, random).or_else(|| self.variant(name))
    }

    /// Picks a variant by traffic share; `random` is any number, evenly distributed over all of `u64`.
    ///
    /// `None` when there is no variant, or all shares are 0. Looks at nothing but the shares, as SageMaker does: an
    /// endpoint's variants are taken to serve the same models, and one that is down gets its share of the errors.
    pub fn pick_variant(&self, random: u64) -> Option<&Arc<Variant>> {
        pick(|| self.variants.iter(), random)
    }

    /// The variants that had a share of the traffic and have none any more, unless nothing has one.
    pub(crate) fn left_by_traffic(&self, before: &Endpoint) -> Vec<Arc<Variant>> {
        let had_a_share = |variant: &Arc<Variant>| {
            before.variants.iter().any(|share| Arc::ptr_eq(&share.variant, variant) && share.weight > 0.0)
        };
        if self.variants.iter().all(|share| share.weight <= 0.0) {
            return Vec::new();
        }
        let without = self.variants.iter().filter(|share| share.weight <= 0.0).map(|share| &share.variant);
        without.filter(|variant| had_a_share(variant)).cloned().collect()
    }

    /// The models that the instances of its production variants list, and its components' copies.
    pub fn models(&self) -> Vec<Arc<Model>> {
        distinct(self.variants.iter().map(|share| &share.variant).chain(self.component_variants()))
    }

    /// Whether a request could be placed in one of its variants or components.
    pub fn has_eligible(&self, now: Time) -> bool {
        let shares = self.variants.iter().map(|share| &share.variant);
        shares.chain(self.component_variants()).any(|variant| variant.has_eligible(now))
    }

    /// Production variants, shadow and components.
    pub(crate) fn all_variants(&self) -> impl Iterator<Item = &Arc<Variant>> {
        let shares = self.variants.iter().chain(&self.shadow).map(|share| &share.variant);
        shares.chain(self.component_variants())
    }

    /// Each once: an adapter has its base's.
    fn component_variants(&self) -> impl Iterator<Item = &Arc<Variant>> {
        let bases = self.components().iter().filter(|component| component.adapter.is_none());
        bases.map(|component| &component.variant)
    }
}

/// Picks one of the shares by its size.
fn pick<'t, I: Iterator<Item = &'t TrafficShare>>(shares: impl Fn() -> I, random: u64) -> Option<&'t Arc<Variant>> {
    let total: f64 = shares().map(|share| share.weight).sum();
    let mut left = (random >> 11) as f64 * (1.0 / (1u64 << 53) as f64) * total;
    let mut last = None;
    for share in shares().filter(|share| share.weight > 0.0) {
        last = Some(&share.variant);
        left -= share.weight;
        if left < 0.0 {
            break;
        }
    }
    // Rounding may leave a crumb after the last one: it is the last one's.
    last
}

/// The models that variants list; of two descriptions of one model, the first.
fn distinct<'t>(variants: impl Iterator<Item = &'t Arc<Variant>>) -> Vec<Arc<Model>> {
    let mut seen = HashSet::new();
    variants.flat_map(|variant| variant.models()).filter(|model| seen.insert(ModelHash::of(model.id()))).collect()
}
