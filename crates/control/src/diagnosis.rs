//! Why a finished request hit or missed: what the router believed, what the engine reported, and the first difference from
//! the nearest earlier request of the same tenant. From hashes alone.

mod place;
mod render;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use isotherm_core::Time;
use isotherm_telemetry::{Change, Ended, Part, PartKind, TracedRequest, bytes_in_equal_parts, parts_of, shared_bytes};
use serde::{Deserialize, Serialize};

pub use self::place::Place;
use crate::observer::unix_seconds;

/// What is lost beyond this share of a prompt wants an explanation.
const WORTH_TELLING: f64 = 0.1;

/// Fewer tokens than this are lost to every prompt: the last block is not whole, and engines compute the last token anew.
const NEVER_CACHED: f64 = 48.0;

/// With less in common, two prompts share no more than the word of a role: not a block of an engine's cache.
const LEAST_SHARED: u32 = isotherm_core::BLOCK_BYTES;

/// With less in common, in bytes, and none of it at the beginning, two prompts have nothing to do with each other.
const LEAST_ALIKE: u32 = 256;

/// A prompt of which this share came from the cache is a hit, as in all views of the router.
const HIT: f64 = 0.5;

/// A finished request, explained. Tells hashes and figures, no text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// When it arrived, in Unix time.
    pub time: f64,
    /// Its id.
    pub request_id: String,
    /// The id of its response.
    pub response_id: Option<String>,
    /// Its endpoint.
    pub endpoint: String,
    /// Its variant.
    pub variant: String,
    /// The model that it named.
    pub model: Option<String>,
    /// Its status; `None` while it is under way.
    pub status: Option<u16>,
    /// Where it went and why; `None` where it went nowhere.
    pub placed: Option<Placed>,
    /// From its arrival to its first generated token.
    pub ttft_ms: Option<f64>,
    /// From its arrival to its end.
    pub duration_ms: Option<f64>,
    /// Length of its prompt as the engine sees it, in bytes.
    pub prompt_bytes: u32,
    /// Tokens of its prompt, as the engine counts them.
    pub prompt_tokens: Option<u64>,
    /// How many of them were cached, as the engine says.
    pub cached_tokens: Option<u64>,
    /// What earlier requests should have left of it where it went, in tokens.
    pub here_tokens: u64,
    /// Where they should have left the most, and how much.
    pub best: Option<Held>,
    /// `hit`, `miss`, `unknown` where the engine does not tell, `failed`, `under_way`.
    pub verdict: Verdict,
    /// Why what was not cached was not.
    pub reason: MissReason,
    /// In which part the prompt parts from the nearest earlier one: `tools`, `system`, `messages[3] (user)`.
    pub part: Option<String>,
    /// The same as it is, for whoever says it in another language; `None` from routers that do not tell.
    #[serde(default)]
    pub place: Option<Place>,
    /// The earlier request of the same tenant with which it shares most; the last one for its model where none shares any.
    pub nearest: Option<Nearest>,
    /// How many earlier requests of its tenant it was compared with.
    pub compared_with: u64,
}

/// Where a request went and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    /// By which strategy.
    pub strategy: String,
    /// The instance.
    pub instance: String,
    /// Why that one.
    pub reason: String,
    /// What made its home full, where it was.
    pub cause: Option<String>,
    /// The instance that its key prefers.
    pub home: Option<String>,
    /// Requests in flight there before it came.
    pub home_in_flight: Option<u32>,
    /// Requests in flight on the instance, itself included.
    pub in_flight: u32,
    /// Its key.
    pub key: Option<String>,
    /// What the strategy believed to be cached, in tokens; `None` where it believes nothing.
    pub expected_cached_tokens: Option<u64>,
}

/// What an instance should hold of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The instance.
    pub instance: String,
    /// How much, in tokens.
    pub tokens: u64,
}

/// The nearest earlier request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nearest {
    /// Its id.
    pub request_id: String,
    /// How long before this one it came, in seconds.
    pub seconds_before: f64,
    /// Where it was served.
    pub instance: Option<String>,
    /// How much of their prompts is equal from the beginning on, in bytes; known to within a 32nd.
    pub shared_bytes: u32,
    /// The same in tokens of this request.
    pub shared_tokens: u64,
    /// How much of this prompt stands in whole parts that the earlier one has, too, wherever they stand there, in bytes.
    pub equal_parts_bytes: u32,
}

/// How a request ended, as far as the cache is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Half of its prompt or more came from the cache.
    Hit,
    /// Less did.
    Miss,
    /// The engine does not say.
    Unknown,
    /// It was not answered.
    Failed,
    /// It has not ended.
    UnderWay,
}

/// Why a part of a prompt was not cached where it was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissReason {
    /// Nothing is missing that could have been there.
    None,
    /// The engine does not say what was cached.
    NotReported,
    /// It was not answered.
    NotAnswered,
    /// No earlier request of its tenant that is kept begins like it, or has its parts.
    FirstSeen,
    /// An earlier one was served there, yet the engine had it no more: evicted, restarted, or its prefix caching is off.
    Evicted,
    /// Another instance holds it: the home was full.
    SpilledToColdInstance,
    /// Another instance holds it, and the strategy chose this one.
    PlacedElsewhere,
    /// An earlier one was still being computed.
    StillComputing,
    /// Its beginning came from the cache and the rest is new: a conversation went on.
    NewText,
    /// The nearest earlier request is for another model.
    ModelChanged,
    /// The nearest earlier request is for another adapter.
    AdapterChanged,
    /// The nearest earlier request has another salt.
    SaltChanged,
    /// Template, its arguments or the effort of reasoning differ.
    TemplateChanged,
    /// Definitions of tools differ.
    ToolsChanged,
    /// Documents differ.
    DocumentsChanged,
    /// What stands before the users' messages differs.
    SystemChanged,
    /// A message differs.
    MessagesChanged,
    /// The prompt differs.
    PromptChanged,
}

/// Explains the request with this id, the last one if there are several. `kept` has the oldest first.
pub(crate) fn of_id(kept: &[Arc<TracedRequest>], id: &str) -> Option<Diagnosis> {
    let is_it = |request: &Arc<TracedRequest>| {
        let response = || request.ended().and_then(|ended| ended.response_id.as_deref());
        *request.request_id == *id || response() == Some(id)
    };
    kept.iter().rposition(is_it).map(|at| diagnose(&kept[..at], &kept[at]))
}

/// Explains a request by those that came before it.
pub(crate) fn diagnose(earlier: &[Arc<TracedRequest>], request: &TracedRequest) -> Diagnosis {
    let ended = request.ended();
    let surroundings = Surroundings::of(earlier, request);
    let (reason, place) = surroundings.reason();
    let decision = ended.and_then(|ended| ended.decision.as_ref());
    Diagnosis {
        time: unix_seconds(request.time),
        request_id: request.request_id.to_string(),
        response_id: ended.and_then(|ended| ended.response_id.as_deref().map(str::to_owned)),
        endpoint: request.endpoint.to_string(),
        variant: request.variant.to_string(),
        model: request.model.as_deref().map(str::to_owned),
        status: ended.map(|ended| ended.status),
        placed: decision.map(Placed::of),
        ttft_ms: ended.and_then(|ended| ended.time_to_first_token).map(milliseconds),
        duration_ms: ended.map(|ended| milliseconds(ended.at.since(request.arrived))),
        prompt_bytes: request.trail.bytes(),
        prompt_tokens: ended.and_then(|ended| ended.prompt_tokens),
        cached_tokens: ended.and_then(|ended| ended.cached_tokens),
        here_tokens: surroundings.here() as u64,
        best: surroundings
            .best()
            .map(|(instance, tokens)| Held { instance: instance.to_owned(), tokens: tokens as u64 }),
        verdict: surroundings.verdict(),
        reason,
        part: place.as_ref().map(ToString::to_string),
        place,
        nearest: surroundings.nearest(),
        compared_with: surroundings.compared_with,
    }
}

/// What earlier requests of the same tenant have to do with one.
struct Surroundings<'r> {
    request: &'r TracedRequest,
    ended: Option<&'r Ended>,
    tokens_per_byte: f64,
    /// What earlier requests should have left on instances of its variant, in tokens.
    holders: BTreeMap<&'r str, f64>,
    /// The same of those that had no first token when this one came.
    computing: f64,
    /// Which earlier one shares most with it, and how much, in bytes.
    nearest: Option<(&'r TracedRequest, u32)>,
    /// Where none begins like it: which one has most of its parts.
    alike: Option<&'r TracedRequest>,
    /// Where none has its parts either: the last one for the same model.
    last: Option<&'r TracedRequest>,
    compared_with: u64,
}

impl<'r> Surroundings<'r> {
    fn of(earlier: &'r [Arc<TracedRequest>], request: &'r TracedRequest) -> Surroundings<'r> {
        let ended = request.ended();
        let bytes = f64::from(request.trail.bytes().max(1));
        let tokens_per_byte =
            ended.and_then(|ended| ended.prompt_tokens).map_or(1.0 / 4.2, |tokens| tokens as f64 / bytes);
        let mut found = Surroundings {
            request,
            ended,
            tokens_per_byte,
            holders: BTreeMap::new(),
            computing: 0.0,
            nearest: None,
            alike: None,
            last: None,
            compared_with: 0,
        };
        // A tenant never learns of another's prompts, not even that they exist.
        let own = || earlier.iter().filter(|one| one.trail.tenant == request.trail.tenant);
        own().for_each(|one| found.take(one));
        if found.nearest.is_none_or(|(_, shared)| shared == 0) {
            // None begins like it: perhaps one goes on like it.
            let parts = parts_of(&request.trail);
            let equal = own().map(|one| (&**one, bytes_in_equal_parts(&one.trail, &parts)));
            let most = equal.max_by_key(|(_, bytes)| *bytes).filter(|(_, bytes)| *bytes >= LEAST_ALIKE);
            found.alike = most.map(|(one, _)| one);
            found.last = own().map(|one| &**one).rfind(|one| one.trail.scope() == request.trail.scope());
        }
        found
    }

    fn take(&mut self, earlier: &'r TracedRequest) {
        self.compared_with += 1;
        let shared = shared_bytes(&earlier.trail, &self.request.trail);
        let shared = if shared < LEAST_SHARED { 0 } else { shared };
        // In one scope counts more than in another; then the longest; then the last.
        let same_scope = |one: &TracedRequest| one.trail.scope() == self.request.trail.scope();
        let rank = |one: &TracedRequest, shared: u32| (shared > 0 && same_scope(one), shared);
        if self.nearest.is_none_or(|(nearest, most)| rank(earlier, shared) >= rank(nearest, most)) {
            self.nearest = Some((earlier, shared));
        }
        if shared == 0 || !same_scope(earlier) || earlier.variant != self.request.variant {
            return;
        }
        let Some(ended) = earlier.ended() else {
            self.computing = self.computing.max(f64::from(shared) * self.tokens_per_byte);
            return;
        };
        let Some(decision) = ended.decision.as_ref().filter(|_| (200..300).contains(&ended.status)) else { return };
        // Whoever goes on from its end begins with its answer, too.
        let goes_on = shared >= earlier.trail.bytes();
        let answer = ended.output_tokens.filter(|_| goes_on).unwrap_or_default() as f64;
        let whole = f64::from(self.request.trail.bytes()) * self.tokens_per_byte;
        let tokens = (f64::from(shared) * self.tokens_per_byte + answer).min(whole);
        if computed_at(earlier, ended) > self.request.arrived {
            self.computing = self.computing.max(tokens);
        } else {
            let most = self.holders.entry(decision.chosen.as_str()).or_default();
            *most = most.max(tokens);
        }
    }

    fn instance(&self) -> Option<&'r str> {
        Some(self.ended?.decision.as_ref()?.chosen.as_str())
    }

    fn here(&self) -> f64 {
        self.instance().and_then(|instance| self.holders.get(instance)).copied().unwrap_or_default()
    }

    fn best(&self) -> Option<(&'r str, f64)> {
        let most = self.holders.iter().max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        Some((most.0, *most.1))
    }

    fn verdict(&self) -> Verdict {
        let Some(ended) = self.ended else { return Verdict::UnderWay };
        match (ended.prompt_tokens, ended.cached_tokens) {
            _ if !(200..300).contains(&ended.status) => Verdict::Failed,
            (Some(prompt), Some(cached)) if cached as f64 >= HIT * prompt as f64 => Verdict::Hit,
            (Some(_), Some(_)) => Verdict::Miss,
            _ => Verdict::Unknown,
        }
    }

    fn nearest(&self) -> Option<Nearest> {
        let begins_like_it = self.nearest.filter(|(_, shared)| *shared > 0);
        let (nearest, shared_bytes) = begins_like_it.or(self.alike.or(self.last).map(|other| (other, 0)))?;
        let equal_parts_bytes = bytes_in_equal_parts(&nearest.trail, &parts_of(&self.request.trail));
        let decision = nearest.ended().and_then(|ended| ended.decision.as_ref());
        Some(Nearest {
            request_id: nearest.request_id.to_string(),
            seconds_before: self.request.arrived.since(nearest.arrived).as_secs_f64(),
            instance: decision.map(|decision| decision.chosen.to_string()),
            shared_bytes,
            shared_tokens: (f64::from(shared_bytes) * self.tokens_per_byte) as u64,
            equal_parts_bytes,
        })
    }

    fn reason(&self) -> (MissReason, Option<Place>) {
        let cached = match (self.verdict(), self.ended.and_then(|ended| ended.prompt_tokens.zip(ended.cached_tokens))) {
            (Verdict::Failed | Verdict::UnderWay, _) => return (MissReason::NotAnswered, None),
            (_, None) => return (MissReason::NotReported, None),
            (_, Some((prompt, cached))) => {
                let lost = prompt.saturating_sub(cached) as f64;
                if lost <= NEVER_CACHED.max(WORTH_TELLING * prompt as f64) {
                    return (MissReason::None, None);
                }
                cached as f64 + NEVER_CACHED.max(WORTH_TELLING * prompt as f64)
            }
        };
        let best = self.best().map_or(0.0, |(_, tokens)| tokens);
        if self.here() > cached {
            return (MissReason::Evicted, None);
        }
        if best > cached {
            let reason = self.ended.and_then(|ended| ended.decision.as_ref()).map(|decision| decision.reason);
            let spilled = matches!(reason, Some(isotherm_core::Reason::Spill | isotherm_core::Reason::Saturated));
            return (if spilled { MissReason::SpilledToColdInstance } else { MissReason::PlacedElsewhere }, None);
        }
        if self.computing > cached {
            return (MissReason::StillComputing, None);
        }
        match self.nearest {
            Some((nearest, shared)) if shared > 0 => changed(Change::between(&nearest.trail, &self.request.trail)),
            _ => match (self.alike, self.last) {
                (Some(alike), _) => changed(Change::between(&alike.trail, &self.request.trail)),
                // Whether the two have to do with each other, nobody knows; where they part may show it.
                (None, Some(last)) => {
                    (MissReason::FirstSeen, changed(Change::between(&last.trail, &self.request.trail)).1)
                }
                (None, None) => (MissReason::FirstSeen, None),
            },
        }
    }
}

/// When a prompt had been computed: at its first token, or with its whole answer where that came at once.
fn computed_at(request: &TracedRequest, ended: &Ended) -> Time {
    ended.time_to_first_token.map_or(ended.at, |elapsed| request.arrived + elapsed)
}

fn changed(change: Change) -> (MissReason, Option<Place>) {
    let Change::Part { part, .. } = change else {
        return match change {
            Change::Model => (MissReason::ModelChanged, None),
            Change::Adapter => (MissReason::AdapterChanged, None),
            Change::Salt => (MissReason::SaltChanged, None),
            Change::None { .. } | Change::Part { .. } => (MissReason::NewText, None),
        };
    };
    let reason = match part.kind {
        PartKind::Template => MissReason::TemplateChanged,
        PartKind::Documents => MissReason::DocumentsChanged,
        PartKind::Tools => MissReason::ToolsChanged,
        _ if change.is_in_system() => MissReason::SystemChanged,
        _ if part.message != Part::NO_MESSAGE => MissReason::MessagesChanged,
        _ => MissReason::PromptChanged,
    };
    (reason, Some(Place::of(part)))
}

fn milliseconds(duration: std::time::Duration) -> f64 {
    duration.as_micros() as f64 / 1_000.0
}

impl Placed {
    fn of(decision: &isotherm_core::Decision) -> Placed {
        Placed {
            strategy: decision.strategy.to_string(),
            instance: decision.chosen.to_string(),
            reason: decision.reason.as_str().to_owned(),
            cause: decision.cause.map(|cause| cause.as_str().to_owned()),
            home: decision.home.as_ref().map(ToString::to_string),
            home_in_flight: decision.home_in_flight,
            in_flight: decision.in_flight,
            key: decision.key.map(|key| key.to_string()),
            expected_cached_tokens: decision.expected_cached_tokens,
        }
    }
}
