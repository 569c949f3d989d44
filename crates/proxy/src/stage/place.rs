//! The fourth stage: which instance. Endpoint and variant first, then the variant's strategy chooses and counts in one
//! step.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Uri};
use isotherm_core::{InstanceId, ModelHash, PrefixKey, Prompt, Refusal, RouteRequest, Time};
use isotherm_fleet::{Location, Placement, Serving, Topology, Variant};
use isotherm_telemetry::InvocationFault;
use isotherm_wire::api::Api;
use isotherm_wire::request::{cache_salt, include_usage};
use isotherm_wire::sagemaker::RuntimeError;

use super::admit::Admitted;
use super::authenticate::authorize;
use super::decode::Decoded;
use super::finish::Record;
use super::shadow;
use super::trace::trace;
use crate::call::Target;
use crate::headers::{TARGET_VARIANT, TRACEPARENT};
use crate::prompt::{Form, Look, Read, Within, tenant_id};
use crate::rescue::Failure;
use crate::route::Route;
use crate::upstream::Outgoing;

/// How many blocks tell prefixes apart in views of the router, where a strategy looks at all of a prompt: as long as a
/// prefix is by default, 4,096 bytes.
const WATCHED_BLOCKS: usize = 16;

/// How often a request looks where it leads, in one go, while deployments take away what it found.
const MOST_LOOKS: usize = 100;

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
    /// The only instances that it may go to, where not all may.
    pub(crate) within: Option<Vec<InstanceId>>,
    /// Where it stands among those that wait: lower goes first.
    pub(crate) priority: i64,
}

/// A request that has its place, or may wait for one.
#[derive(Debug)]
pub(crate) enum Placed {
    /// It has its place.
    At(Box<Admitted>),
    /// Every instance that could serve it is full.
    Before(Box<Unplaced>),
}

/// A request before a variant that is full.
#[derive(Debug)]
pub(crate) struct Unplaced {
    /// As it came: where it leads may have to be found out again.
    pub(crate) request: Decoded,
    /// What it wants of the variant.
    pub(crate) wish: Wish,
    adapter: Option<Arc<str>>,
}

impl Wish {
    /// The wish as routing takes it, for a request that `tried` failed already.
    pub(crate) fn request<'w>(&'w self, tried: &'w [isotherm_core::Generation]) -> RouteRequest<'w> {
        let Wish { key, prompt, model, pinned, within, .. } = self;
        RouteRequest {
            key: *key,
            prompt: prompt.as_ref(),
            model: *model,
            pinned: pinned.as_ref(),
            within: within.as_deref(),
            tried,
        }
    }

    /// What a request wants that leads to this target.
    pub(crate) fn of(target: Target, request: &mut Decoded, record: &Record) -> Result<Wish, Failure> {
        let Target { variant, pinned, within, adapter, .. } = target;
        authorize(variant.endpoint(), record)?;
        let seed = record.rules.hash_seed;
        let look = Look::of(&variant.routing(), record.rules.keep_trails());
        request.read.look_at(look, seed).map_err(Failure::Malformed)?;
        let invocation = record.call.as_ref().map(|call| &call.invocation);
        let tenant_id = match invocation {
            Some(invocation) => invocation.prefix_aware_id.clone(),
            None => tenant_id(&request.head.headers)?,
        };
        let target_model = invocation.and_then(|invocation| invocation.target_model.as_deref());
        let scope = Within {
            endpoint: variant.endpoint(),
            variant: variant.name(),
            adapter: adapter.as_deref().or(target_model),
            tenant: record.principal.as_ref().map(|holder| holder.tenant()),
            tenant_id: tenant_id.as_deref(),
        };
        let key = request.read.prompt.key(seed, &scope);
        let prompt = request.read.prompt.within(seed, &scope);
        let priority = request.read.prompt.priority;
        Ok(Wish { key, prompt, model: model_condition(request), pinned, within, priority, variant })
    }

    /// By what views of the router know its beginning: its key, or the chain of its first blocks.
    fn prefix(&self) -> Option<PrefixKey> {
        let blocks = self.prompt.as_ref().map(|prompt| &prompt.blocks);
        let block = blocks.and_then(|blocks| blocks.get(WATCHED_BLOCKS - 1).or(blocks.last()));
        self.key.or(block.map(|block| PrefixKey::from_u128(u128::from(block.0) << 64)))
    }

    /// Chooses an instance and counts the request there.
    pub(crate) fn choose(&self, now: Time, record: &Record) -> Result<Placement, Refusal> {
        record.worker.with_random(|random| self.variant.choose(&self.request(&[]), now, random))
    }

    /// Whether the variant is still one of those that serve.
    pub(crate) fn is_served(&self, record: &Record) -> bool {
        record.worker.fleet.topology().variants().any(|served| Arc::ptr_eq(served, &self.variant))
    }

    /// What a client is told when no instance can be chosen.
    pub(crate) fn refused(&self, refusal: Refusal, record: &Record) -> Failure {
        if let Some(call) = &record.call {
            if let Some(session) = call.session_id() {
                return RuntimeError::session_lost(session).into();
            }
            let is_component = call.invocation.inference_component.is_some();
            // Those that drain belong to an operation that has taken them away already.
            let has_copies = || self.variant.instances(record.worker.now()).iter().any(|copy| !copy.is_draining());
            if is_component && (self.within.as_ref().is_some_and(Vec::is_empty) || !has_copies()) {
                self.variant.metrics().invocation_fault(InvocationFault::NoCapacity);
                return RuntimeError::no_capacity().into();
            }
        }
        refused(refusal, record)
    }
}

/// Chooses an instance and counts the request there.
pub(crate) fn place(mut request: Decoded, record: &mut Record) -> Result<Placed, Failure> {
    let begun = record.worker.now();
    let Sought { wish, adapter, placement } = seek(&mut request, begun, record)?;
    let now = record.worker.now();
    wish.variant.metrics().routed(now.since(begun));
    let unplaced = Unplaced { request, wish, adapter };
    Ok(match placement {
        Some(placement) => Placed::At(unplaced.at(placement, now, record)),
        None => Placed::Before(Box::new(unplaced)),
    })
}

/// Where a request leads at this moment.
struct Sought {
    wish: Wish,
    adapter: Option<Arc<str>>,
    /// `None` while every instance that could serve it is full.
    placement: Option<Placement>,
}

/// Every turn but the first takes a topology that was replaced between two looks at it: what a topology leads to is among
/// what it serves. That is a matter of microseconds, so the bound is not met; without one, a control plane that changed as
/// fast as requests look would hold up everybody on this thread.
fn seek(request: &mut Decoded, now: Time, record: &mut Record) -> Result<Sought, Failure> {
    for _ in 0..MOST_LOOKS {
        if let Some(sought) = look(request, now, record)? {
            return Ok(sought);
        }
    }
    Err(Failure::Unavailable)
}

/// `None` where a deployment took the variant away just now: what has come in its place serves the request.
fn look(request: &mut Decoded, now: Time, record: &mut Record) -> Result<Option<Sought>, Failure> {
    let target = target(request, record)?;
    let adapter = target.adapter.clone();
    let wish = Wish::of(target, request, record)?;
    let placement = match wish.choose(now, record) {
        Ok(placement) => Some(placement),
        Err(Refusal::Full) => None,
        Err(_) if !wish.is_served(record) => return Ok(None),
        Err(refusal) => {
            record.variant = Some(Arc::clone(&wish.variant));
            return Err(wish.refused(refusal, record));
        }
    };
    record.variant = Some(Arc::clone(&wish.variant));
    record.prefix = wish.prefix();
    trace(request, &wish.variant, adapter.as_deref(), placement.as_ref(), record);
    Ok(Some(Sought { wish, adapter, placement }))
}

impl Unplaced {
    /// Looks again at where the request leads, since the variant that it waited for is gone; its place, if there is one
    /// now.
    pub(crate) fn seek_again(&mut self, record: &mut Record) -> Result<Option<Placement>, Failure> {
        let Sought { wish, adapter, placement } = seek(&mut self.request, record.worker.now(), record)?;
        (self.wish, self.adapter) = (wish, adapter);
        Ok(placement)
    }

    /// The request at the place that it has now, and a copy of it on its way to the shadow variant.
    pub(crate) fn at(self, placement: Placement, now: Time, record: &mut Record) -> Box<Admitted> {
        let Unplaced { mut request, wish, adapter } = self;
        let copy = shadow::wish(&mut request, record);
        let (route, outgoing) = outgoing(request, adapter.as_deref(), record);
        if let Some(copy) = copy {
            shadow::send(copy, &route, &outgoing, record);
        }
        record.place(placement.decision.clone(), Arc::clone(&placement.instance), now);
        // Handed on from stage to stage, and back to whoever waits for it.
        Box::new(Admitted { route, outgoing, wish, placement })
    }
}

/// What will be sent: the request as it came, or on SageMaker's paths in the form in which containers take it.
fn outgoing(request: Decoded, adapter: Option<&str>, record: &mut Record) -> (Route, Outgoing) {
    let Decoded { route, mut head, read, credentials_pass } = request;
    if let Some(call) = &record.call {
        head.method = Method::POST;
        head.uri = Uri::from_static(call.api.container_path());
        head.headers = call.container_headers(&head.headers, adapter);
    }
    let credentials_pass = credentials_pass && record.call.is_none();
    continue_trace(&mut head.headers, record);
    let request_id = record.request_id.clone();
    (route, Outgoing { head, request_id, credentials_pass, body: completed(read, record) })
}

/// Tells the request's place in its trace, where tracing is on.
fn continue_trace(headers: &mut HeaderMap, record: &Record) {
    let traceparent = record.span.as_ref().map(|span| HeaderValue::from_maybe_shared(Bytes::from(span.traceparent())));
    if let Some(Ok(traceparent)) = traceparent {
        headers.insert(TRACEPARENT, traceparent);
    }
}

/// The body, and in it what the router adds where that is on: the salt of a key's tenant, and the wish for the usage of a
/// stream, which its client did not have.
fn completed(read: Read, record: &mut Record) -> Bytes {
    let Read { mut body, form: Form::Api(api), prompt, .. } = read else { return read.body };
    let rules = &record.rules;
    if let (true, Some(holder)) = (rules.inject_cache_salt, &record.principal)
        && let Ok(Some(splice)) = cache_salt(&body, api, &rules.hash_seed.0.to_be_bytes(), holder.tenant())
    {
        body = Bytes::from(splice.apply(&body));
    }
    if rules.inject_include_usage
        && prompt.stream
        && let Ok(Some(splice)) = include_usage(&body, api)
    {
        record.usage_is_ours = true;
        body = Bytes::from(splice.apply(&body));
    }
    body
}

/// What a client is told when no instance can be chosen.
fn refused(refusal: Refusal, record: &Record) -> Failure {
    match (refusal, &record.model) {
        (Refusal::ModelNotFound, Some(model)) => Failure::ModelNotFound(model.clone()),
        _ => Failure::Unavailable,
    }
}

/// Where the request leads.
fn target(request: &Decoded, record: &mut Record) -> Result<Target, Failure> {
    let worker = std::rc::Rc::clone(&record.worker);
    let topology = worker.fleet.topology();
    if let Some(call) = &record.call {
        let target = call.target(&topology, record)?;
        if let Some(call) = &mut record.call {
            call.production_variant = Some(Arc::clone(&target.production_variant));
        }
        return Ok(target);
    }
    let stored = match &request.route {
        Route::StoredResponse { id } => Some(&**id),
        _ => request.read.prompt.previous_response_id.as_deref(),
    };
    let pinned = stored.and_then(|id| worker.fleet.stored_responses().locate(id));
    let variant = match pinned.as_ref().and_then(|location| topology.variant_at(location)) {
        Some(variant) => Arc::clone(variant),
        None => pick_variant(&topology, request, model_condition(request), record)?,
    };
    let production_variant = Arc::clone(variant.name());
    let pinned = pinned.map(|location: Arc<Location>| location.instance.clone());
    Ok(Target { variant, production_variant, within: None, pinned, adapter: None })
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
    let endpoint = match topology.serving(record.foreign_account(), model) {
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
