//! What instances should have cached, and what of it they had not: requests whose prefix their instance had served before.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use isotherm_core::{Availability, InstanceId, PrefixKey};
use isotherm_fleet::Fleet;
use isotherm_telemetry::WatchedKey;

use super::history::POINTS;

/// How many prefixes on instances a generation remembers; two generations are remembered.
const REMEMBERED: usize = 32_768;

/// How many steps a generation lives: half of what the history spans.
const STEPS: u32 = POINTS as u32 / 2;

/// The shortest prompt of which something can be expected to be cached, in tokens: engines cache whole blocks.
const LEAST_TOKENS: u64 = 128;

/// How much later than the end of one request another must have begun to find its prefix cached: keys are taken once a
/// second.
const SETTLED: Duration = Duration::from_secs(2);

/// Characters of a token of English prose.
const CHARACTERS_PER_TOKEN: f64 = 4.2;

/// Which prefixes were served where, and what became of those that came again.
#[derive(Default)]
pub(crate) struct Beliefs {
    young: HashMap<(PrefixKey, u64), SystemTime>,
    old: HashMap<(PrefixKey, u64), SystemTime>,
    steps: u32,
    instances: BTreeMap<Place, OfInstance>,
    variants: BTreeMap<(Arc<str>, Arc<str>), VecDeque<Short>>,
}

/// Endpoint, variant and instance.
type Place = (Arc<str>, Arc<str>, InstanceId);

#[derive(Default)]
struct OfInstance {
    /// Another one for another life or process, so that nothing is expected of a new one.
    life: u64,
    was_up: bool,
    /// Newest last; the last is of the step that is under way.
    steps: VecDeque<Repeated>,
}

/// Requests whose prefix their instance had served before, where the engine said what was cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Repeated {
    pub(crate) requests: u64,
    /// Those of whose prompt nothing was cached.
    pub(crate) misses: u64,
}

/// Prompts by their length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Short {
    /// Those of which the engine said how long they are.
    pub(crate) prompts: u64,
    /// Those shorter than the prefix length, about: what is asked last is a part of their key.
    pub(crate) short: u64,
    pub(crate) tokens: u64,
}

impl Beliefs {
    /// Takes in a finished request; `prefix_length` is its variant's, in characters.
    pub(super) fn take_in(&mut self, watched: &WatchedKey, prefix_length: Option<u32>, now: SystemTime) {
        let Some((prompt, cached)) = watched.cached_of_prompt else { return };
        let variant = (Arc::clone(&watched.endpoint), Arc::clone(&watched.variant));
        if let Some(short) = self.variants.get_mut(&variant).and_then(VecDeque::back_mut) {
            short.prompts += 1;
            short.tokens += prompt;
            let characters = prompt as f64 * CHARACTERS_PER_TOKEN;
            short.short += u64::from(prefix_length.is_some_and(|length| characters < f64::from(length)));
        }
        let place = (variant.0, variant.1, watched.instance.clone());
        let Some(instance) = self.instances.get_mut(&place).filter(|_| prompt >= LEAST_TOKENS) else { return };
        let key = (watched.key, instance.life);
        let served_first = self.young.get(&key).or_else(|| self.old.get(&key)).copied();
        let began = now - watched.duration;
        if served_first.is_some_and(|first| first + SETTLED <= began)
            && let Some(repeated) = instance.steps.back_mut()
        {
            repeated.requests += 1;
            repeated.misses += u64::from(cached == 0);
        }
        if self.young.len() >= REMEMBERED {
            self.turn();
        }
        self.young.insert(key, served_first.unwrap_or(now));
    }

    /// Ends a step, and follows the instances that there are. What ended is told to their metrics.
    pub(super) fn step(&mut self, fleet: &Fleet) {
        self.steps += 1;
        if self.steps >= STEPS {
            self.turn();
        }
        let topology = fleet.topology();
        let (mut before, mut shorts) = (std::mem::take(&mut self.instances), std::mem::take(&mut self.variants));
        for variant in topology.variants() {
            let name = (Arc::clone(variant.endpoint()), Arc::clone(variant.name()));
            let mut steps = shorts.remove(&name).unwrap_or_default();
            push(&mut steps, Short::default());
            self.variants.insert(name.clone(), steps);
            for one in variant.instances(fleet.clock().now()) {
                let place = (Arc::clone(&name.0), Arc::clone(&name.1), one.instance.id().clone());
                let mut of = before.remove(&place).unwrap_or_default();
                if let Some(ended) = of.steps.back() {
                    one.instance.metrics().repeated(ended.requests, ended.misses);
                }
                push(&mut of.steps, Repeated::default());
                self.instances.insert(place, of);
            }
        }
        self.follow(fleet);
    }

    /// Notes which instances have another process: nothing is expected of it.
    pub(super) fn follow(&mut self, fleet: &Fleet) {
        let topology = fleet.topology();
        for variant in topology.variants() {
            for one in variant.instances(fleet.clock().now()) {
                let id = one.instance.id().clone();
                let place = (Arc::clone(variant.endpoint()), Arc::clone(variant.name()), id);
                let Some(of) = self.instances.get_mut(&place) else { continue };
                let is_up = one.availability != Availability::Down;
                let mut hasher = DefaultHasher::new();
                (one.instance.serial(), one.instance.engine().restarts).hash(&mut hasher);
                // Down and up again is a new process as far as anybody knows.
                of.follow(hasher.finish(), is_up && !of.was_up);
                of.was_up = is_up;
            }
        }
    }

    /// What an instance's repeated requests found in the last steps.
    pub(crate) fn repeated(&self, endpoint: &Arc<str>, variant: &Arc<str>, id: &InstanceId, steps: usize) -> Repeated {
        let of = self.instances.get(&(Arc::clone(endpoint), Arc::clone(variant), id.clone()));
        let steps = of.into_iter().flat_map(|of| of.steps.iter().rev().take(steps));
        steps.fold(Repeated::default(), |sum, step| Repeated {
            requests: sum.requests + step.requests,
            misses: sum.misses + step.misses,
        })
    }

    /// How long a variant's prompts were in the last steps.
    pub(crate) fn short(&self, endpoint: &Arc<str>, variant: &Arc<str>, steps: usize) -> Short {
        let of = self.variants.get(&(Arc::clone(endpoint), Arc::clone(variant)));
        let steps = of.into_iter().flat_map(|of| of.iter().rev().take(steps));
        steps.fold(Short::default(), |sum, step| Short {
            prompts: sum.prompts + step.prompts,
            short: sum.short + step.short,
            tokens: sum.tokens + step.tokens,
        })
    }

    fn turn(&mut self) {
        self.old = std::mem::take(&mut self.young);
        self.steps = 0;
    }
}

impl OfInstance {
    /// Begins another life where the process is another one, or may be.
    fn follow(&mut self, process: u64, came_back: bool) {
        if self.life & !LIVES != process & !LIVES || came_back {
            self.life = (process & !LIVES) | (self.life.wrapping_add(1) & LIVES);
            // What was missed before says nothing of what is there now.
            self.steps.iter_mut().for_each(|step| *step = Repeated::default());
        }
    }
}

/// The bits of a life that count how often one process was gone and back.
const LIVES: u64 = 0xffff;

fn push<T>(steps: &mut VecDeque<T>, step: T) {
    if steps.len() >= POINTS {
        steps.pop_front();
    }
    steps.push_back(step);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn beliefs() -> Beliefs {
        let mut beliefs = Beliefs::default();
        let of = OfInstance { life: 7 << 16, was_up: true, steps: VecDeque::from([Repeated::default()]) };
        beliefs.instances.insert(("chat".into(), "a".into(), InstanceId::new("i")), of);
        beliefs.variants.insert(("chat".into(), "a".into()), VecDeque::from([Short::default()]));
        beliefs
    }

    fn watched(key: u128, cached: u64, duration: Duration) -> WatchedKey {
        WatchedKey {
            key: PrefixKey::from_u128(key),
            endpoint: "chat".into(),
            variant: "a".into(),
            instance: InstanceId::new("i"),
            cached_of_prompt: Some((1_000, cached)),
            duration,
        }
    }

    fn repeated(beliefs: &Beliefs) -> (u64, u64) {
        let Repeated { requests, misses } = beliefs.repeated(&"chat".into(), &"a".into(), &InstanceId::new("i"), 1);
        (requests, misses)
    }

    #[test]
    fn only_what_began_after_its_prefix_was_served_is_expected_to_hit() {
        let (mut beliefs, start) = (beliefs(), SystemTime::UNIX_EPOCH + 1_000 * SECOND);
        beliefs.take_in(&watched(1, 0, SECOND), None, start);
        // Began while the first one was computed: a burst, not a miss.
        beliefs.take_in(&watched(1, 0, 10 * SECOND), None, start + 9 * SECOND);
        assert_eq!(repeated(&beliefs), (0, 0));
        beliefs.take_in(&watched(1, 0, SECOND), None, start + 20 * SECOND);
        beliefs.take_in(&watched(1, 900, SECOND), None, start + 30 * SECOND);
        beliefs.take_in(&watched(2, 0, SECOND), None, start + 30 * SECOND);
        assert_eq!(repeated(&beliefs), (2, 1));
    }

    #[test]
    fn nothing_is_expected_of_a_new_process_nor_of_short_prompts_nor_of_engines_that_do_not_say() {
        let (mut beliefs, start) = (beliefs(), SystemTime::UNIX_EPOCH + 1_000 * SECOND);
        beliefs.take_in(&watched(1, 0, SECOND), None, start);
        beliefs.instances.values_mut().for_each(|of| of.follow(9 << 16, false));
        beliefs.take_in(&watched(1, 0, SECOND), None, start + 20 * SECOND);
        let short = WatchedKey { cached_of_prompt: Some((100, 0)), ..watched(3, 0, SECOND) };
        let silent = WatchedKey { cached_of_prompt: None, ..watched(4, 0, SECOND) };
        for _ in 0..3 {
            beliefs.take_in(&short, None, start + 40 * SECOND);
            beliefs.take_in(&silent, None, start + 60 * SECOND);
        }
        assert_eq!(repeated(&beliefs), (0, 0));
    }

    #[test]
    fn prompts_below_the_prefix_length_are_counted() {
        let (mut beliefs, start) = (beliefs(), SystemTime::UNIX_EPOCH + 1_000 * SECOND);
        beliefs.take_in(&watched(1, 0, SECOND), Some(4_096), start);
        beliefs.take_in(&watched(1, 0, SECOND), Some(8_192), start);
        let short = beliefs.short(&"chat".into(), &"a".into(), 1);
        assert_eq!(short, Short { prompts: 2, short: 1, tokens: 2_000 });
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut beliefs, now) = (beliefs(), SystemTime::UNIX_EPOCH + 1_000 * SECOND);
        for key in 0..3 * REMEMBERED as u128 {
            beliefs.take_in(&watched(key, 0, SECOND), None, now);
        }
        assert!(beliefs.young.len() + beliefs.old.len() <= 2 * REMEMBERED);
    }
}
