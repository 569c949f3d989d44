//! One strategy beside the one in force: the routing code that serves, and what its instances' caches would hold.

use std::collections::{BTreeMap, HashMap};

use isotherm_core::{
    ConcurrencyThreshold, InstanceId, InstanceSpec, PrefixAware, PrefixKey, PrefixLength, Prompt, Report, Rollout,
    RouteRequest, Routing, Slot, Strategy, Time, VariantState,
};
use isotherm_telemetry::{PartKind, TracedRequest, Trail};
use rand_pcg::Pcg64;

use super::cache::Cache;
use super::cached;

/// What an engine's cache is taken to hold before anyone says, in tokens.
const UNKNOWN_CAPACITY: f64 = 1e9;

/// The most blocks of the caches of all instances together: some ten megabytes.
const MOST_BLOCKS: usize = 200_000;

/// So many instances that are gone may be remembered before a strategy begins anew.
const MOST_GONE: usize = 256;

/// Prefix lengths that are tried beside the one in force.
const LENGTHS: [u64; 3] = [1_024, 4_096, 16_384];

/// The strategies that are tried beside each other, the one in force first.
pub(super) fn candidates(in_force: Routing) -> Vec<Rival> {
    let rules = match in_force.strategy {
        Strategy::PrefixAware(rules) => rules,
        _ => PrefixAware::default(),
    };
    let with_length = |length| PrefixLength::new(length).map(|prefix_length| PrefixAware { prefix_length, ..rules });
    let mut strategies = vec![in_force.strategy, Strategy::Random, Strategy::LeastOutstandingRequests];
    strategies.extend(LENGTHS.into_iter().filter_map(|length| with_length(length).ok()).map(Strategy::PrefixAware));
    strategies.push(Strategy::Adaptive);
    let mut rivals: Vec<Rival> = Vec::new();
    for (index, strategy) in strategies.into_iter().enumerate() {
        if !rivals.iter().any(|rival| rival.strategy == strategy) {
            rivals.push(Rival::new(strategy, index as u64));
        }
    }
    rivals
}

/// A strategy, and what it would have had.
pub(super) struct Rival {
    strategy: Strategy,
    name: String,
    state: VariantState<usize>,
    ids: Vec<InstanceId>,
    caches: Vec<Cache>,
    served: Vec<f64>,
    under_way: HashMap<u64, UnderWay>,
    random: Pcg64,
    /// Fading sums, in tokens.
    prompt: f64,
    cached: f64,
    unpublished: (f64, f64),
}

struct UnderWay {
    slot: Slot,
    instance: usize,
    held: u32,
    is_stored: bool,
}

impl Rival {
    fn new(strategy: Strategy, seed: u64) -> Rival {
        let name = match strategy {
            Strategy::PrefixAware(rules) => format!("{}@{}", strategy.name(), rules.prefix_length.get()),
            _ => strategy.name().to_string(),
        };
        let routing = Routing { strategy, rollout: Rollout::default() };
        Rival {
            strategy,
            name,
            state: VariantState::new(routing, Time::ZERO),
            ids: Vec::new(),
            caches: Vec::new(),
            served: Vec::new(),
            under_way: HashMap::new(),
            random: Pcg64::new(u128::from(seed), 0),
            prompt: 0.0,
            cached: 0.0,
            unpublished: (0.0, 0.0),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// The rate at which it hits; `None` before it has seen anything.
    pub(super) fn hit_rate(&self) -> Option<f64> {
        (self.prompt > 0.0).then(|| self.cached / self.prompt)
    }

    /// The share of the busiest instance.
    pub(super) fn busiest_share(&self) -> Option<f64> {
        let all: f64 = self.served.iter().sum();
        (all > 0.0).then(|| self.served.iter().copied().fold(0.0, f64::max) / all)
    }

    pub(super) fn follow(
        &mut self,
        known: &[(InstanceSpec, bool, Option<u64>)],
        tokens_per_byte: f64,
        learned_capacity: f64,
    ) {
        if self.ids.len() > known.len() + MOST_GONE {
            *self = Rival { unpublished: self.unpublished, ..Rival::new(self.strategy, 0) };
        }
        let most_blocks = most_blocks(known.len());
        for (spec, is_up, tokens) in known {
            let capacity = (tokens.map_or(learned_capacity, |tokens| tokens as f64) / tokens_per_byte) as u64;
            match self.ids.iter().position(|id| *id == spec.id) {
                Some(at) => {
                    self.caches[at].set_capacity(capacity);
                    if !self.state.update(spec) {
                        self.state.add(spec.clone(), at);
                    }
                }
                None => {
                    self.state.add(spec.clone(), self.ids.len());
                    self.ids.push(spec.id.clone());
                    self.caches.push(Cache::new(capacity, most_blocks));
                    self.served.push(0.0);
                }
            }
            self.state.set_draining(&spec.id, !is_up);
        }
        for (at, id) in self.ids.iter().enumerate() {
            if !known.iter().any(|(spec, ..)| spec.id == *id) && self.state.remove(id).is_some() {
                self.caches[at].set_capacity(0);
            }
        }
    }

    pub(super) fn arrives(&mut self, number: u64, request: &TracedRequest, at: Time) {
        let trail = &request.trail;
        let prompt = (self.strategy == Strategy::Adaptive).then(|| Prompt {
            blocks: trail.blocks.iter().map(|block| isotherm_core::BlockHash(trail.scoped(*block))).collect(),
            ends: trail.ends.iter().copied().collect(),
            tenant: trail.tenant_id,
        });
        let key = match self.strategy {
            Strategy::PrefixAware(rules) => key(trail, rules.prefix_length),
            _ => None,
        };
        let route = RouteRequest { key, prompt: prompt.as_ref(), ..RouteRequest::default() };
        let Ok(choice) = self.state.choose(&route, at, &mut self.random) else { return };
        let instance = choice.instance;
        self.served[instance] += 1.0;
        let held = self.caches[instance].held(trail);
        self.under_way.insert(number, UnderWay { slot: choice.slot, instance, held, is_stored: false });
    }

    pub(super) fn first_token(&mut self, number: u64, request: &TracedRequest, at: Time) {
        let Some(under_way) = self.under_way.get_mut(&number) else { return };
        self.caches[under_way.instance].store(&request.trail, 0);
        under_way.is_stored = true;
        self.state.first_token(&mut under_way.slot, at);
    }

    /// The request is over; with its prompt's tokens, its answer's bytes and tokens where it was answered.
    pub(super) fn ends(&mut self, number: u64, request: &TracedRequest, answered: Option<(f64, u32, Option<u64>)>) {
        let Some(UnderWay { mut slot, instance, held, .. }) = self.under_way.remove(&number) else { return };
        if let Some((prompt, answer, output_tokens)) = answered {
            self.caches[instance].store(&request.trail, answer);
            let cached = cached(held, request.trail.bytes(), prompt);
            self.prompt += prompt;
            self.cached += cached;
            self.unpublished = (self.unpublished.0 + prompt, self.unpublished.1 + cached);
            self.state.answered(&mut slot);
            let report =
                Report { prompt_tokens: Some(prompt as u64), cached_tokens: Some(cached as u64), output_tokens };
            self.state.report(&slot, &report);
        }
        self.state.finish(slot);
    }

    /// A request of which nothing more will be heard.
    pub(super) fn give_up(&mut self, number: u64) {
        if let Some(under_way) = self.under_way.remove(&number) {
            self.state.finish(under_way.slot);
        }
    }

    pub(super) fn fade(&mut self, kept: f64) {
        self.prompt *= kept;
        self.cached *= kept;
        self.served.iter_mut().for_each(|served| *served *= kept);
    }

    /// Whole tokens, of prompts and cached ones, since it was asked last.
    pub(super) fn take_unpublished(&mut self) -> (u64, u64) {
        let whole = (self.unpublished.0 as u64, self.unpublished.1 as u64);
        self.unpublished = (self.unpublished.0 - whole.0 as f64, self.unpublished.1 - whole.1 as f64);
        whole
    }
}

/// The key of a prompt's first characters, out of its blocks: what stands before its text, such as tools, is no part of a
/// prefix that is cut from the text.
pub(super) fn key(trail: &Trail, length: PrefixLength) -> Option<PrefixKey> {
    let is_before = |kind: PartKind| matches!(kind, PartKind::Template | PartKind::Documents | PartKind::Tools);
    let before = trail.parts.iter().take_while(|part| is_before(part.part.kind)).last().map_or(0, |part| part.end);
    let until = before.saturating_add(length.get());
    let at = trail.ends.partition_point(|end| *end <= until).checked_sub(1)?;
    let hash = u128::from(trail.scoped(trail.blocks[at]));
    Some(PrefixKey::from_u128(hash << 64 | u128::from(trail.tenant_id ^ hash as u64)))
}

/// What the instances should hold after the requests that really went there.
#[derive(Debug)]
pub(super) struct Believed {
    caches: BTreeMap<InstanceId, Cache>,
    under_way: HashMap<u64, (InstanceId, u32)>,
    /// In tokens, where engines do not say.
    learned_capacity: f64,
    /// How much more than reported was believed of late, in shares of prompts.
    excess: f64,
    tokens_per_byte: f64,
}

impl Default for Believed {
    fn default() -> Believed {
        Believed {
            caches: BTreeMap::new(),
            under_way: HashMap::new(),
            learned_capacity: UNKNOWN_CAPACITY,
            excess: 0.0,
            tokens_per_byte: 1.0 / 4.2,
        }
    }
}

impl Believed {
    /// What an instance's cache holds, in tokens, as far as the requests told; a lot before they did.
    pub(super) fn learned_capacity(&self) -> f64 {
        self.learned_capacity
    }

    pub(super) fn follow<'i>(
        &mut self,
        known: impl Iterator<Item = (&'i InstanceId, Option<u64>)> + Clone,
        tokens_per_byte: f64,
    ) {
        self.tokens_per_byte = tokens_per_byte;
        self.caches.retain(|id, _| known.clone().any(|(known, _)| known == id));
        let most_blocks = most_blocks(known.clone().count());
        for (id, tokens) in known {
            let tokens = tokens.map_or(self.learned_capacity, |tokens| tokens as f64);
            let capacity = (tokens / tokens_per_byte) as u64;
            self.caches.entry(id.clone()).or_insert_with(|| Cache::new(capacity, most_blocks)).set_capacity(capacity);
        }
    }

    pub(super) fn arrives(&mut self, number: u64, chosen: &InstanceId, trail: &Trail) {
        let held = self.caches.get(chosen).map_or(0, |cache| cache.held(trail));
        self.under_way.insert(number, (chosen.clone(), held));
    }

    /// How much of a prompt an instance should hold, in bytes.
    #[cfg(test)]
    pub(super) fn held(&self, instance: &InstanceId, trail: &Trail) -> u32 {
        self.caches.get(instance).map_or(0, |cache| cache.held(trail))
    }

    pub(super) fn computed(&mut self, number: u64, trail: &Trail, answer: u32) {
        let Some((chosen, _)) = self.under_way.get(&number) else { return };
        if let Some(cache) = self.caches.get_mut(chosen) {
            cache.store(trail, answer);
        }
    }

    /// How many bytes were believed to be held where it went.
    pub(super) fn ends(&mut self, number: u64) -> Option<u32> {
        self.under_way.remove(&number).map(|(_, held)| held)
    }

    /// An engine has reported what it found: where less than was believed is found again and again, caches are smaller;
    /// where more is, they are larger.
    pub(super) fn learn(&mut self, believed: f64, reported: f64, prompt: f64) {
        self.excess += 0.01 * ((believed - reported) / prompt.max(1.0) - self.excess);
        let fullest = self.caches.values().map(Cache::used).max().unwrap_or_default() as f64 * self.tokens_per_byte;
        if self.excess > 0.02 {
            self.learned_capacity = self.learned_capacity.min(fullest.max(1_024.0)) * 0.995;
        } else if self.excess < -0.02 {
            self.learned_capacity = (self.learned_capacity * 1.005).min(UNKNOWN_CAPACITY);
        }
    }
}

/// How many blocks each of so many instances may hold.
fn most_blocks(instances: usize) -> usize {
    (MOST_BLOCKS / instances.max(1)).max(1_000)
}

/// The concurrency threshold of a strategy that has one.
pub(super) fn threshold(strategy: Strategy) -> Option<ConcurrencyThreshold> {
    match strategy {
        Strategy::PrefixAware(rules) => Some(rules.concurrency_threshold),
        _ => None,
    }
}
