//! Why a request goes where it goes: decodes it and looks up its order of instances, without counting or sending it.

mod render;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use isotherm_core::{
    Availability, InstanceId, ModelHash, PrefixAware, RouteRequest, Routing, SpillRule, Strategy, StrategyName,
};
use isotherm_fleet::{Component, Endpoint, Fleet, InstanceNow, ScoredInstance, Serving, Topology, Variant};
use isotherm_wire::api::Api;
use isotherm_wire::request::{CharacterCount, canonical, describe};
use serde::{Deserialize, Serialize};

use crate::headers::PREFIX_AWARE_ID;
use crate::prompt::{End, Form, Look, Prompt, Read, Within, tenant_id};
use crate::rescue::Failure;
use crate::route::{Route, RuntimeApi};
use crate::settings::Rules;

/// A request to be explained.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    /// The path that it would be sent to; found out from the body when `None`.
    pub path: Option<&'q str>,
    /// Its body.
    pub body: &'q [u8],
    /// Its `x-amzn-sagemaker-prefix-aware-id` header.
    pub tenant_id: Option<&'q str>,
    /// The tenant of the key that it would be sent with; the key's name, where that names no tenant.
    pub tenant: Option<&'q str>,
}

/// Where a request would go and why, as things stand. Tells no text of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The path.
    pub path: String,
    /// Whether the path was found out from the body.
    pub path_assumed: bool,
    /// The endpoint.
    pub endpoint: String,
    /// The variant; the one with the greatest share of traffic where there are several.
    pub variant: String,
    /// How many other variants of the endpoint get traffic, too: there, the key is another one.
    pub other_variants: usize,
    /// The variant's strategy.
    pub strategy: StrategyName,
    /// The model that the request names.
    pub model: Option<String>,
    /// What separates its placement from that of equal prefixes.
    pub tenant_id: Option<String>,
    /// What the prefix is cut from; `None` where the strategy does not look at prefixes.
    pub prefix: Option<Prefix>,
    /// The key of the prefix, in hexadecimal; `None` without text.
    pub key: Option<String>,
    /// How long the whole prompt is as the engine sees it, tools and media included, in bytes; `None` without text, or
    /// where the strategy does not look at all of it.
    pub prompt_bytes: Option<u64>,
    /// Which share of the keys the strategy decides, in percent; the others go at random.
    pub rollout: u8,
    /// How many requests in flight make a home full.
    pub concurrency_threshold: Option<u32>,
    /// Where a request goes whose home is full.
    pub spill: Option<SpillRule>,
    /// The instance that stores what the request refers to, and beats every strategy while it is eligible.
    pub pinned: Option<String>,
    /// The instances in the order of the key; by `ADAPTIVE`, the chosen one and then the others by their scores; else in
    /// the order of the configuration.
    pub order: Vec<Place>,
}

/// The prefix of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    /// What is counted.
    pub unit: Unit,
    /// How long the whole text, or body, is.
    pub text_length: usize,
    /// How much of it decides the home, at most.
    pub prefix_length: u32,
    /// Where a breakpoint of the client's ends the prefix before that, in the same unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakpoint: Option<usize>,
    /// Whether all of the text is within the prefix: then the question is part of the key, and another question to the
    /// same document has another home.
    pub covers_everything: bool,
}

/// What a prefix is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Unicode characters of the text.
    Characters,
    /// Bytes of the body as it came.
    Bytes,
    /// Bytes of the body's canonical form.
    CanonicalBytes,
}

/// An instance's place in the order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Its id.
    pub instance: String,
    /// Where it is reached.
    pub url: String,
    /// Requests in flight on it.
    pub in_flight: u32,
    /// The most that may be.
    pub max_in_flight: Option<u32>,
    /// Whether it may be chosen for this request.
    pub eligible: bool,
    /// `up`, `draining`, `down` or `ejected`.
    pub availability: String,
    /// What `ADAPTIVE` reckons of the request there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
}

/// What a request would add to an instance, by what `ADAPTIVE` believes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Whether it would be chosen.
    pub chosen: bool,
    /// How much of the prompt's beginning it is believed to hold, in bytes.
    pub held_bytes: u64,
    /// Tokens of the prompt that it would have to compute.
    pub uncached_tokens: u64,
    /// Tokens that it has to compute before: those of requests that were sent there and have no first token yet.
    pub waiting_tokens: u64,
    /// The latency that the request would add there, to itself and to the others, in milliseconds; the least is best.
    pub added_ms: f64,
}

/// Why a request cannot be explained: it would be refused before it is placed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// No instance is asked at this path.
    #[error("{0}: at this path, no instance is asked with a prompt")]
    Path(String),
    /// The body is no JSON.
    #[error("the body cannot be understood: {0}")]
    Malformed(#[from] isotherm_wire::request::Malformed),
    /// The tenant id is none.
    #[error("the tenant id must be 1 to 64 printable characters, the first one no space")]
    TenantId,
    /// No instance serves the model.
    #[error("no instance serves the model {0:?}")]
    ModelNotFound(String),
    /// There is no endpoint of that name.
    #[error("there is no endpoint {0:?}")]
    NoEndpoint(String),
    /// The endpoint has no inference component of that name, or none was named.
    #[error(
        "endpoint {0:?} is asked for its inference components by name: explain the path \
         /endpoints/{0}/inference-components/NAME/openai/v1/chat/completions, with the NAME of one that it has"
    )]
    Component(String),
    /// There is no endpoint, or none of its variants gets traffic.
    #[error("no variant gets traffic")]
    NoVariant,
}

/// Explains where a request would go under these rules.
///
/// # Errors
///
/// When it would be refused before an instance is chosen.
pub fn explain(fleet: &Fleet, rules: &Rules, question: &Question<'_>) -> Result<Explanation, ExplainError> {
    let path = question.path.unwrap_or_else(|| likely_path(question.body));
    let route = Route::find(&Method::POST, path, &rules.allow_paths).map_err(|_| ExplainError::Path(path.into()))?;
    let form = Form::of(&route, &HeaderMap::new());
    if form == Form::Ignored {
        return Err(ExplainError::Path(path.into()));
    }
    let mut read = Read::new(Bytes::copy_from_slice(question.body), form, Look::Nowhere, rules.hash_seed)?;
    let model = read.prompt.model.as_deref().filter(|_| path.starts_with("/v1/")).map(ModelHash::of);
    let topology = fleet.topology();
    let (endpoint, component) = match &route {
        Route::Runtime { endpoint, api } => called(&topology, endpoint, api)?,
        _ => match topology.serving(None, model) {
            Serving::Endpoint(endpoint) => (endpoint, None),
            Serving::Nowhere => return Err(ExplainError::ModelNotFound(read.prompt.model.unwrap_or_default().into())),
            Serving::NoEndpoint => return Err(ExplainError::NoVariant),
        },
    };
    let (variant, other_variants) = match component {
        Some(component) => (&component.variant, 0),
        None => busiest(endpoint).ok_or(ExplainError::NoVariant)?,
    };
    let adapter = component.and_then(|component| Some((&component.name, component.adapter.as_ref()?)));
    let routing = variant.routing();
    read.look_at(Look::of(&routing, false), rules.hash_seed)?;
    let tenant_id = checked(question.tenant_id)?.or(read.prompt.cache_key.as_deref().map(str::to_owned));
    let within = Within {
        endpoint: variant.endpoint(),
        variant: variant.name(),
        adapter: adapter.map(|(name, _)| &**name),
        tenant: question.tenant,
        tenant_id: question.tenant_id,
    };
    let key = read.prompt.key(rules.hash_seed, &within);
    let stored = read.prompt.previous_response_id.as_deref();
    let pinned = stored.and_then(|id| fleet.stored_responses().locate(id));
    let prompt = read.prompt.within(rules.hash_seed, &within);
    let now = fleet.clock().now();
    let order = match (key, &prompt) {
        (Some(key), _) => {
            let order = variant.order(key, model, now);
            order.iter().map(|ordered| Place::of(&ordered.now, ordered.eligible)).collect()
        }
        (None, Some(prompt)) => {
            let pinned = pinned.as_ref().map(|location| &location.instance);
            let request = RouteRequest { prompt: Some(prompt), model, pinned, ..RouteRequest::default() };
            Place::by_score(&variant.scores(&request, prompt, now))
        }
        (None, None) => Place::unordered(variant, now),
    };
    let order = match adapter {
        Some((_, adapter)) => only_on(order, &adapter.copies),
        None => order,
    };
    Ok(Explanation {
        path: path.into(),
        path_assumed: question.path.is_none(),
        endpoint: endpoint.name().to_string(),
        variant: variant.name().to_string(),
        other_variants,
        strategy: routing.strategy.name(),
        model: read.prompt.model.as_deref().map(str::to_owned),
        tenant_id,
        prefix: prefix(&read.prompt, question.body, form, &routing),
        key: key.map(|key| key.to_string()),
        prompt_bytes: prompt.map(|prompt| prompt.bytes()),
        rollout: routing.rollout.percent(),
        concurrency_threshold: prefix_aware(&routing).map(|rules| rules.concurrency_threshold.get()),
        spill: prefix_aware(&routing).map(|rules| rules.spill),
        pinned: pinned.map(|location| location.instance.to_string()),
        order,
    })
}

/// The path that a body like this is sent to.
fn likely_path(body: &[u8]) -> &'static str {
    let has_text = |api: Api| {
        let mut any = false;
        let described = describe(body, api, &mut |_: &str| {
            any = true;
            false
        });
        described.is_ok() && any
    };
    let likely = [Api::ChatCompletions, Api::Completions, Api::Responses].into_iter().find(|api| has_text(*api));
    likely.unwrap_or(Api::Invocations).path()
}

/// What a path of SageMaker's runtime leads to.
fn called<'t>(
    topology: &'t Topology,
    name: &str,
    api: &RuntimeApi,
) -> Result<(&'t Arc<Endpoint>, Option<&'t Arc<Component>>), ExplainError> {
    let endpoint = topology.endpoint(name).ok_or_else(|| ExplainError::NoEndpoint(name.into()))?;
    let component = match api {
        RuntimeApi::OpenAi { component: Some(component) } => {
            Some(endpoint.component(component).ok_or_else(|| ExplainError::Component(name.into()))?)
        }
        _ if endpoint.has_components() => return Err(ExplainError::Component(name.into())),
        _ => None,
    };
    Ok((endpoint, component))
}

/// The same places, of which only those with the adapter are eligible.
fn only_on(mut order: Vec<Place>, copies: &[InstanceId]) -> Vec<Place> {
    for place in &mut order {
        place.eligible &= copies.iter().any(|copy| copy.as_str() == place.instance);
    }
    order
}

fn busiest(endpoint: &Endpoint) -> Option<(&Arc<Variant>, usize)> {
    let shares = || endpoint.variants().iter().filter(|share| share.weight > 0.0);
    let busiest = shares().max_by(|a, b| a.weight.total_cmp(&b.weight))?;
    Some((&busiest.variant, shares().count() - 1))
}

/// A tenant id as a header would be checked.
fn checked(id: Option<&str>) -> Result<Option<String>, ExplainError> {
    let Some(id) = id else { return Ok(None) };
    let mut headers = HeaderMap::new();
    headers.insert(PREFIX_AWARE_ID, HeaderValue::from_str(id).map_err(|_| ExplainError::TenantId)?);
    tenant_id(&headers).map_err(|_: Failure| ExplainError::TenantId)
}

fn prefix(prompt: &Prompt, body: &[u8], form: Form, routing: &Routing) -> Option<Prefix> {
    let prefix_length = routing.prefix_length()?.get();
    let (unit, text_length) = match form {
        _ if prompt.canonical => (Unit::CanonicalBytes, canonical_length(body)),
        _ if prompt.in_bytes => (Unit::Bytes, body.len()),
        Form::Api(api) => (Unit::Characters, characters(body, api)),
        _ => (Unit::Characters, characters(body, Api::ChatCompletions)),
    };
    let breakpoint = (prompt.end == End::Breakpoint).then_some(prompt.taken);
    Some(Prefix { unit, text_length, prefix_length, breakpoint, covers_everything: prompt.end == End::Text })
}

fn canonical_length(body: &[u8]) -> usize {
    let mut length = 0;
    // What has no canonical form is not keyed by it.
    let _ = canonical(body, &mut |piece| {
        length += piece.len();
        true
    });
    length
}

fn characters(body: &[u8], api: Api) -> usize {
    let mut count = CharacterCount::default();
    // What cannot be read has no text.
    let _ = describe(body, api, &mut count);
    count.characters()
}

fn prefix_aware(routing: &Routing) -> Option<PrefixAware> {
    match routing.strategy {
        Strategy::PrefixAware(rules) => Some(rules),
        Strategy::Random | Strategy::RoundRobin | Strategy::LeastOutstandingRequests | Strategy::Adaptive => None,
    }
}

impl Place {
    fn of(now: &InstanceNow, eligible: bool) -> Place {
        Place {
            instance: now.instance.id().to_string(),
            url: now.instance.address().url().to_string(),
            in_flight: now.in_flight,
            max_in_flight: now.max_in_flight.map(std::num::NonZero::get),
            eligible,
            availability: now.availability.as_str().to_owned(),
            score: None,
        }
    }

    fn by_score(scored: &[ScoredInstance]) -> Vec<Place> {
        let mut best_first: Vec<_> = scored.iter().collect();
        best_first.sort_by(|a, b| {
            let rank = |one: &ScoredInstance| (!one.chosen, !one.eligible);
            rank(a).cmp(&rank(b)).then(a.milliseconds.total_cmp(&b.milliseconds))
        });
        let place = |one: &&ScoredInstance| Place { score: Some(Score::of(one)), ..Place::of(&one.now, one.eligible) };
        best_first.iter().map(place).collect()
    }

    fn unordered(variant: &Variant, now: isotherm_core::Time) -> Vec<Place> {
        let instances = variant.instances(now);
        instances.iter().map(|now| Place::of(now, now.availability == Availability::Up)).collect()
    }
}

impl Score {
    fn of(scored: &ScoredInstance) -> Score {
        Score {
            chosen: scored.chosen,
            held_bytes: scored.held_bytes,
            uncached_tokens: scored.uncached_tokens.round() as u64,
            waiting_tokens: scored.waiting_tokens.round() as u64,
            added_ms: (scored.milliseconds * 1e3).round() / 1e3,
        }
    }
}

#[cfg(test)]
mod tests;
