//! Which prefixes are asked for most, and how often prefixes repeat: a bounded sketch of keys.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use isotherm_core::{InstanceId, PrefixKey};
use isotherm_telemetry::WatchedKey;
use serde::Serialize;

/// How many keys are counted at once.
const COUNTED: usize = 256;

/// How many keys a generation remembers; two generations are remembered.
const REMEMBERED: usize = 32_768;

/// How many holders of a prefix are told apart.
const HOLDERS: usize = 8;

/// What a step leaves of the counts: they halve in five minutes.
const FADING: f64 = 0.988_5;

/// Counts keys by Space-Saving (Metwally, Agrawal, El Abbadi: "Efficient computation of frequent and top-k elements in
/// data streams", 2005): a key that is new takes the place of the least counted one and starts from its count, so the
/// hottest keys are always among those counted. Counts fade, so that what was hot yesterday is not hot today.
#[derive(Default)]
pub(crate) struct Prefixes {
    counted: HashMap<PrefixKey, Counted>,
    /// Those that were counted least when all were looked through last, the least one last, each with its count: they
    /// give their places to new keys. Looking through all for each new key cost more than all else that is done with it.
    least: Vec<(f64, PrefixKey)>,
    total: f64,
    young: HashSet<PrefixKey>,
    old: HashSet<PrefixKey>,
}

struct Counted {
    endpoint: Arc<str>,
    variant: Arc<str>,
    count: f64,
    /// How much of the count may be another key's.
    inherited: f64,
    prompt_tokens: f64,
    cached_tokens: f64,
    reported: f64,
    holders: BTreeMap<InstanceId, f64>,
}

/// A prefix that is asked for often.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct HotPrefix {
    /// Its key, in hexadecimal: what `x-isotherm-key` and `isotherm explain` show.
    pub(crate) key: String,
    pub(crate) endpoint: String,
    pub(crate) variant: String,
    /// Its part of the requests that have a key, 0 to 1; the last minutes weigh most.
    pub(crate) share: f64,
    /// How much of that may be others'.
    pub(crate) share_uncertainty: f64,
    /// Tokens of its prompts on average, where engines say.
    pub(crate) prompt_tokens: Option<f64>,
    /// What was cached of its prompts, 0 to 1, where engines say.
    pub(crate) hit_rate: Option<f64>,
    /// Where its requests went, most first.
    pub(crate) holders: Vec<Holder>,
}

/// An instance that serves a prefix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Holder {
    pub(crate) instance: String,
    /// Its part of the prefix's requests, 0 to 1.
    pub(crate) share: f64,
}

impl Prefixes {
    /// Counts a key. Whether it was seen before, as far as is remembered.
    pub(super) fn take_in(&mut self, watched: &WatchedKey) -> bool {
        self.total += 1.0;
        self.counted_at(watched).take_in(watched);
        self.remember(watched.key)
    }

    /// Lets the counts fade by a step.
    pub(super) fn fade(&mut self) {
        self.total *= FADING;
        self.least.clear();
        for counted in self.counted.values_mut() {
            counted.fade();
        }
    }

    /// The hottest prefixes, at most so many.
    pub(crate) fn hottest(&self, at_most: usize) -> Vec<HotPrefix> {
        let mut all: Vec<_> = self.counted.iter().filter(|(_, counted)| counted.count >= 0.5).collect();
        all.sort_by(|(a_key, a), (b_key, b)| b.count.total_cmp(&a.count).then(a_key.cmp(b_key)));
        all.into_iter().take(at_most).map(|(key, counted)| counted.shown(*key, self.total)).collect()
    }

    /// The keys of a variant that are asked for most, hottest first.
    pub(super) fn hottest_keys(&self, endpoint: &str, variant: &str, at_most: usize) -> Vec<PrefixKey> {
        let own = |counted: &&Counted| *counted.endpoint == *endpoint && *counted.variant == *variant;
        let mut all: Vec<_> = self.counted.iter().filter(|(_, counted)| own(counted)).collect();
        all.sort_by(|(a_key, a), (b_key, b)| b.count.total_cmp(&a.count).then(a_key.cmp(b_key)));
        all.into_iter().take(at_most).map(|(key, _)| *key).collect()
    }

    fn counted_at(&mut self, watched: &WatchedKey) -> &mut Counted {
        let mut inherited = 0.0;
        if self.counted.len() >= COUNTED && !self.counted.contains_key(&watched.key) {
            inherited = self.make_room();
        }
        self.counted.entry(watched.key).or_insert_with(|| Counted {
            endpoint: Arc::clone(&watched.endpoint),
            variant: Arc::clone(&watched.variant),
            count: inherited,
            inherited,
            prompt_tokens: 0.0,
            cached_tokens: 0.0,
            reported: 0.0,
            holders: BTreeMap::new(),
        })
    }

    /// Forgets the key that is counted least; its count.
    fn make_room(&mut self) -> f64 {
        loop {
            while let Some((count, key)) = self.least.pop() {
                // One that was asked for since then is not the least any more.
                if self.counted.get(&key).is_some_and(|counted| counted.count <= count) {
                    self.counted.remove(&key);
                    return count;
                }
            }
            let Some(least) = self.counted.values().map(|counted| counted.count).min_by(f64::total_cmp) else {
                return 0.0;
            };
            // A key that takes a place counts one more than whoever had it, so all that are below that come before it.
            let below = self.counted.iter().filter(|(_, counted)| counted.count < least + 1.0);
            self.least = below.map(|(key, counted)| (counted.count, *key)).collect();
            self.least.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        }
    }

    fn remember(&mut self, key: PrefixKey) -> bool {
        let known = self.young.contains(&key) || self.old.contains(&key);
        if self.young.len() >= REMEMBERED {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key);
        known
    }
}

impl Counted {
    fn take_in(&mut self, watched: &WatchedKey) {
        self.count += 1.0;
        if self.holders.len() < HOLDERS || self.holders.contains_key(&watched.instance) {
            *self.holders.entry(watched.instance.clone()).or_default() += 1.0;
        }
        if let Some((prompt, cached)) = watched.cached_of_prompt {
            self.prompt_tokens += prompt as f64;
            self.cached_tokens += cached as f64;
            self.reported += 1.0;
        }
    }

    fn fade(&mut self) {
        for number in
            [&mut self.count, &mut self.inherited, &mut self.prompt_tokens, &mut self.cached_tokens, &mut self.reported]
        {
            *number *= FADING;
        }
        self.holders.values_mut().for_each(|count| *count *= FADING);
        // One that has gone cold makes room for another.
        self.holders.retain(|_, count| *count >= 0.05);
    }

    fn shown(&self, key: PrefixKey, total: f64) -> HotPrefix {
        let served: f64 = self.holders.values().sum();
        let mut holders: Vec<Holder> = self
            .holders
            .iter()
            .map(|(instance, count)| Holder { instance: instance.to_string(), share: count / served })
            .collect();
        holders.sort_by(|a, b| b.share.total_cmp(&a.share));
        HotPrefix {
            key: key.to_string(),
            endpoint: self.endpoint.to_string(),
            variant: self.variant.to_string(),
            share: self.count / total,
            share_uncertainty: self.inherited / total,
            prompt_tokens: (self.reported > 0.0).then(|| self.prompt_tokens / self.reported),
            hit_rate: (self.prompt_tokens > 0.0).then(|| self.cached_tokens / self.prompt_tokens),
            holders,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(key: u128, instance: &str) -> WatchedKey {
        WatchedKey {
            key: PrefixKey::from_u128(key),
            endpoint: "chat".into(),
            variant: "a".into(),
            instance: InstanceId::new(instance),
            cached_of_prompt: Some((1_000, 900)),
            duration: std::time::Duration::ZERO,
        }
    }

    #[test]
    fn the_hottest_is_found_among_many_that_come_once() {
        let mut prefixes = Prefixes::default();
        for number in 0..20_000 {
            prefixes.take_in(&watched(1_000 + number, "i"));
            if number % 10 == 0 {
                prefixes.take_in(&watched(7, if number % 30 == 0 { "j" } else { "i" }));
            }
        }
        assert!(prefixes.counted.len() <= COUNTED);
        let hottest = &prefixes.hottest(1)[0];
        assert_eq!(hottest.key, PrefixKey::from_u128(7).to_string());
        assert!((hottest.share - 1.0 / 11.0).abs() < 0.005 + hottest.share_uncertainty, "{hottest:?}");
        assert_eq!(hottest.holders[0].instance, "i");
        assert_eq!((hottest.prompt_tokens, hottest.hit_rate), (Some(1_000.0), Some(0.9)));
    }

    #[test]
    fn a_new_key_takes_the_place_of_the_least_counted() {
        let mut prefixes = Prefixes::default();
        let mut counts: HashMap<PrefixKey, f64> = HashMap::new();
        for number in 0..5_000_u128 {
            // Some come again, sooner or later, and the counts fade now and then.
            let key = if number % 3 == 0 { number * number % 389 } else { 1_000 + number };
            let least = counts.values().copied().min_by(f64::total_cmp).filter(|_| counts.len() >= COUNTED);
            prefixes.take_in(&watched(key, "i"));
            let key = PrefixKey::from_u128(key);
            if let (Some(least), false) = (least, counts.contains_key(&key)) {
                let gone: Vec<f64> =
                    counts.extract_if(|key, _| !prefixes.counted.contains_key(key)).map(|(_, count)| count).collect();
                assert_eq!(gone, [least]);
                counts.insert(key, least);
            }
            *counts.entry(key).or_default() += 1.0;
            assert_eq!(prefixes.counted[&key].count, counts[&key]);
            if number % 700 == 0 {
                prefixes.fade();
                counts.values_mut().for_each(|count| *count *= FADING);
            }
        }
        assert_eq!(counts.len(), COUNTED);
    }

    #[test]
    fn a_key_repeats_once_it_was_seen_and_memory_is_bounded() {
        let mut prefixes = Prefixes::default();
        assert!(!prefixes.take_in(&watched(1, "i")));
        assert!(prefixes.take_in(&watched(1, "i")));
        for number in 0..3 * REMEMBERED as u128 {
            prefixes.remember(PrefixKey::from_u128(10 + number));
        }
        assert!(prefixes.young.len() + prefixes.old.len() <= 2 * REMEMBERED);
        assert!(!prefixes.take_in(&watched(1, "i")));
    }

    #[test]
    fn what_is_not_asked_for_any_more_fades() {
        let mut prefixes = Prefixes::default();
        for _ in 0..100 {
            prefixes.take_in(&watched(1, "i"));
        }
        (0..180).for_each(|_| prefixes.fade());
        (0..50).for_each(|_| _ = prefixes.take_in(&watched(2, "i")));
        assert_eq!(prefixes.hottest(1)[0].key, PrefixKey::from_u128(2).to_string());
    }
}
