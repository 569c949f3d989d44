//! The fourth stage: which instance. Endpoint and variant first, then the variant's strategy chooses and counts in one
//! step.

use std::sync::Arc;

use bytes::Bytes;
use isotherm_core::{InstanceId, ModelHash, PrefixKey, Prompt, Refusal, RouteRequest};
use isotherm_fleet::{Location, Placement, Serving, Topology, Variant};
use isotherm_wire::api::Api;
use isotherm_wire::request::include_usage;

use super::decode::Decoded;
use super::finish::Record;
use crate::headers::TARGET_VARIANT;
use crate::prompt::{Form, Look, Read, Within, tenant_id};
use crate::rescue::Failure;
use crate::route::Route;
use crate::upstream::Outgoing;

/// What the request wants of its variant, at its first choice and at every later one.
#[derive(Debug)]
pub(crate) struct Wish {
    /// Where it is placed.
    pub(crate) variant: Arc<Variant>,
    /// The prefix's key, where there is one.
    pub(crate) key: Option<PrefixKey>,
    /// The prompt, where the strategy looks at all of it.
    pub(crate) prompt: Option<Prompt>,
    /// The model, where the path makes it a condition.
    pub(crate) model: Option<ModelHash>,
    /// The instance that stores what it refers to.
    pub(crate) pinned: Option<InstanceId>,
}

/// A request that has its place, or may wait for one.
#[derive(Debug)]
pub(crate) struct Placed {
    /// What it asks for.
    pub(crate) route: Route,
    /// What will be sent.
    pub(crate) outgoing: Outgoing,
    /// What it wants.
    pub(crate) wish: Wish,
    /// Its place; `None` while every instance that could serve it is full.
    pub(crate) placement: Option<Placement>,
}

impl Wish {
    /// The wish as routing takes it, for a request that `tried` failed already.
    pub(crate) fn request<'w>(&'w self, tried: &'w [isotherm_core::Generation]) -> RouteRequest<'w> {
        let Wish { key, prompt, model, pinned, .. } = self;
        RouteRequest {
            key: *key,
            prompt: prompt.as_ref(),
            model: *model,
            pinned: pinned.as_ref(),
            within: None,
            tried,
        }
    }
}

/// Chooses an instance and counts the request there.
pub(crate) fn place(mut request: Decoded, record: &mut Record) -> Result<Placed, Failure> {
    let worker = std::rc::Rc::clone(&record.worker);
    let begun = worker.now();
    let wish = wish(&mut request, record)?;
    record.variant = Some(Arc::clone(&wish.variant));
    let chosen = worker.with_random(|random| wish.variant.choose(&wish.request(&[]), begun, random));
    let placement = match chosen {
        Ok(placement) => Some(placement),
        Err(Refusal::Full) => None,
        Err(refusal) => return Err(refused(refusal, record)),
    };
    wish.variant.metrics().routed(worker.now().since(begun));
    let outgoing = Outgoing {
        method: request.head.method,
        uri: request.head.uri,
        headers: request.head.headers,
        request_id: record.request_id.clone(),
        credentials_pass: request.credentials_pass,
        body: with_usage(request.read, record),
    };
    Ok(Placed { route: request.route, outgoing, wish, placement })
}

/// The body; where that is on, with the wish for the usage of a stream, which its client did not have.
fn with_usage(read: Read, record: &mut Record) -> Bytes {
    if let (true, Form::Api(api)) = (record.rules.inject_include_usage && read.prompt.stream, read.form)
        && let Ok(Some(splice)) = include_usage(&read.body, api)
    {
        record.usage_is_ours = true;
        return Bytes::from(splice.apply(&read.body));
    }
    read.body
}

/// What a client is told when no instance can be chosen.
pub(crate) fn refused(refusal: Refusal, record: &Record) -> Failure {
    match (refusal, &record.model) {
        (Refusal::ModelNotFound, Some(model)) => Failure::ModelNotFound(model.clone()),
        _ => Failure::Unavailable,
    }
}

fn wish(request: &mut Decoded, record: &Record) -> Result<Wish, Failure> {
    let fleet = &record.worker.fleet;
    let topology = fleet.topology();
    let stored = match &request.route {
        Route::StoredResponse { id } => Some(&**id),
        _ => request.read.prompt.previous_response_id.as_deref(),
    };
    let pinned = stored.and_then(|id| fleet.stored_responses().locate(id));
    let model = model_condition(request);
    let variant = match pinned.as_ref().and_then(|location| topology.variant_at(location)) {
        Some(variant) => Arc::clone(variant),
        None => pick_variant(&topology, request, model, record)?,
    };
    let seed = record.rules.hash_seed;
    request.read.look_at(Look::of(&variant.routing()), seed).map_err(Failure::Malformed)?;
    let within = Within {
        endpoint: variant.endpoint(),
        variant: variant.name(),
        tenant: record.principal.as_ref().map(|holder| holder.tenant()),
        tenant_id: tenant_id(&request.head.headers)?,
    };
    let key = request.read.prompt.key(seed, &within);
    let prompt = request.read.prompt.within(seed, &within);
    let pinned = pinned.map(|location: Arc<Location>| location.instance.clone());
    Ok(Wish { variant, key, prompt, model, pinned })
}

/// The model filters on the `/v1` paths only; elsewhere it is just part of the key.
fn model_condition(request: &Decoded) -> Option<ModelHash> {
    let filters = request.head.uri.path().starts_with("/v1/");
    request.read.prompt.model.as_deref().filter(|_| filters).map(ModelHash::of)
}

fn pick_variant(
    topology: &Topology,
    request: &Decoded,
    model: Option<ModelHash>,
    record: &Record,
) -> Result<Arc<Variant>, Failure> {
    let endpoint = match topology.serving(model) {
        Serving::Endpoint(endpoint) => endpoint,
        Serving::Nowhere => return Err(refused(Refusal::ModelNotFound, record)),
        Serving::NoEndpoint => return Err(Failure::Unavailable),
    };
    let named = match &request.route {
        Route::Prompt(Api::Invocations) => request.head.headers.get(TARGET_VARIANT),
        _ => None,
    };
    match named {
        Some(name) => {
            let variant = name.to_str().ok().and_then(|name| endpoint.variant(name));
            variant.cloned().ok_or(Failure::NoSuchVariant)
        }
        None => endpoint.pick_variant(record.worker.random()).cloned().ok_or(Failure::Unavailable),
    }
}
