//! What changes of the fleet moved: which keys got another home, and where.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use isotherm_core::{Availability, Homes, PrefixKey, Strategy};
use isotherm_fleet::{Fleet, Variant};
use isotherm_telemetry::WatchedKey;
use serde::Serialize;

use super::prefixes::Prefixes;
use super::requests::unix_seconds;

/// How many changes are kept.
const KEPT: usize = 20;

/// How many of a variant's hottest prefixes a change tells of.
const FOLLOWED: usize = 50;

/// How many moved prefixes are told of a change, hottest first.
const TOLD: usize = 20;

/// How many of a variant's keys are compared for the metrics: the last ones.
const COMPARED: usize = 2_048;

/// The last changes of the fleet.
#[derive(Default)]
pub(crate) struct Changes {
    newest_last: VecDeque<FleetChange>,
    variants: BTreeMap<(Arc<str>, Arc<str>), OfVariant>,
}

/// How a variant stood when it was looked at last, and which keys it was asked for.
struct OfVariant {
    stands: Standing,
    /// Newest last; a key may stand there more than once.
    keys: VecDeque<PrefixKey>,
}

/// Who may be chosen, and whose home each key has there.
#[derive(PartialEq)]
struct Standing {
    available: BTreeSet<String>,
    /// Nobody's where keys have no homes.
    homes: Homes,
}

/// Instances came or went, or may be chosen again or no more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FleetChange {
    /// When it was seen, in Unix time.
    pub(crate) time: f64,
    pub(crate) endpoint: Arc<str>,
    pub(crate) variant: Arc<str>,
    /// Instances that may be chosen since.
    pub(crate) came: Vec<String>,
    /// Instances that may be chosen no more.
    pub(crate) went: Vec<String>,
    /// How many of the hottest prefixes had a home and have one, and how many of them got another.
    pub(crate) followed: usize,
    pub(crate) moved: usize,
    /// The hottest of those that moved.
    pub(crate) moves: Vec<Move>,
}

/// A prefix that got another home.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Move {
    /// Its key, in hexadecimal.
    pub(crate) key: String,
    pub(crate) from: String,
    pub(crate) to: String,
}

impl Changes {
    /// The last changes, newest first.
    pub(crate) fn newest(&self) -> Vec<FleetChange> {
        self.newest_last.iter().rev().cloned().collect()
    }

    /// Takes in a key of a finished request.
    pub(super) fn take_in(&mut self, watched: &WatchedKey) {
        let name = (Arc::clone(&watched.endpoint), Arc::clone(&watched.variant));
        let Some(of) = self.variants.get_mut(&name) else { return };
        if of.keys.len() >= COMPARED {
            of.keys.pop_front();
        }
        of.keys.push_back(watched.key);
    }

    /// Looks who may be chosen now, and notes and counts what has changed since the last look.
    pub(super) fn look(&mut self, fleet: &Fleet, prefixes: &Prefixes, now: SystemTime) {
        let topology = fleet.topology();
        let mut before = std::mem::take(&mut self.variants);
        for variant in topology.variants() {
            let name = (Arc::clone(variant.endpoint()), Arc::clone(variant.name()));
            let stands = Standing::of(variant, fleet);
            // A variant that is new has had no home yet.
            let Some(mut of) = before.remove(&name) else {
                self.variants.insert(name, OfVariant { stands, keys: VecDeque::new() });
                continue;
            };
            if of.stands != stands {
                of.count(&stands, variant);
                let hottest = prefixes.hottest_keys(variant.endpoint(), variant.name(), FOLLOWED);
                self.newest_last.extend(of.stands.until(&stands, &hottest, variant, now));
                of.stands = stands;
            }
            self.variants.insert(name, of);
        }
        let beyond = self.newest_last.len().saturating_sub(KEPT);
        self.newest_last.drain(..beyond);
    }
}

impl OfVariant {
    /// Counts the keys seen lately that have another home now.
    fn count(&self, now: &Standing, variant: &Variant) {
        if self.stands.homes == Homes::default() || now.homes == Homes::default() {
            return;
        }
        let mut keys: Vec<PrefixKey> = self.keys.iter().copied().collect();
        keys.sort_unstable();
        keys.dedup();
        let mut moved: BTreeMap<String, u64> = BTreeMap::new();
        for (_, _, to) in self.stands.moved(now, &keys) {
            *moved.entry(to).or_default() += 1;
        }
        variant.metrics().keys_compared(keys.len() as u64);
        moved.iter().for_each(|(instance, keys)| variant.metrics().keys_remapped(instance, *keys));
    }
}

impl Standing {
    fn of(variant: &Variant, fleet: &Fleet) -> Standing {
        let instances = variant.instances(fleet.clock().now());
        let up = || instances.iter().filter(|one| one.availability == Availability::Up);
        // Under other strategies keys have no homes; an inference component's copies go by their hosts.
        let has_homes = matches!(variant.routing().strategy, Strategy::PrefixAware(_)) && !variant.name().contains('/');
        let members = up().filter(|_| has_homes).map(|one| (one.instance.id(), one.weight));
        Standing { available: up().map(|one| one.instance.id().to_string()).collect(), homes: Homes::among(members) }
    }

    /// Those of these keys that have another home after a change: each with the one before and the one after.
    fn moved(&self, after: &Standing, keys: &[PrefixKey]) -> Vec<(PrefixKey, String, String)> {
        let both = keys.iter().filter_map(|key| Some((*key, self.homes.home(*key)?, after.homes.home(*key)?)));
        both.filter(|(_, from, to)| from != to).map(|(key, from, to)| (key, from.to_string(), to.to_string())).collect()
    }

    /// What a change did to the hottest keys; `None` where nobody came or went.
    fn until(
        &self,
        after: &Standing,
        hottest: &[PrefixKey],
        variant: &Variant,
        now: SystemTime,
    ) -> Option<FleetChange> {
        if self.available == after.available {
            return None;
        }
        let has_both = |key: &&PrefixKey| self.homes.home(**key).and(after.homes.home(**key)).is_some();
        let moves = self.moved(after, hottest);
        let told = |(key, from, to): (PrefixKey, String, String)| Move { key: key.to_string(), from, to };
        Some(FleetChange {
            time: unix_seconds(now),
            endpoint: Arc::clone(variant.endpoint()),
            variant: Arc::clone(variant.name()),
            came: after.available.difference(&self.available).cloned().collect(),
            went: self.available.difference(&after.available).cloned().collect(),
            followed: hottest.iter().filter(has_both).count(),
            moved: moves.len(),
            moves: moves.into_iter().take(TOLD).map(told).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use isotherm_config::{Config, Environment, Overrides};
    use isotherm_core::InstanceId;
    use isotherm_fleet::{Clock, InstanceName};
    use isotherm_telemetry::Metrics;

    use super::*;

    fn fleet(metrics: &Arc<Metrics>) -> Fleet {
        let instances = (1..=4).map(|port| format!("http://127.0.0.1:{port}")).collect();
        let overrides = Overrides { instances, port: Some("0".to_owned()), ..Overrides::default() };
        let config = Config::load(None, &std::iter::empty().collect::<Environment>(), &overrides).expect("valid");
        Fleet::new(&config, Arc::clone(metrics), Clock::start())
    }

    #[test]
    fn only_what_was_at_home_on_a_drained_instance_moves() {
        let metrics = Arc::new(Metrics::new("test"));
        let fleet = fleet(&metrics);
        let (mut prefixes, mut changes) = (Prefixes::default(), Changes::default());
        let variant = Arc::clone(fleet.topology().variants().next().expect("a variant"));
        let now = SystemTime::now();
        changes.look(&fleet, &prefixes, now);
        for key in 0..40 {
            let watched = WatchedKey {
                key: PrefixKey::from_u128(key),
                endpoint: Arc::clone(variant.endpoint()),
                variant: Arc::clone(variant.name()),
                instance: InstanceId::new("http://127.0.0.1:1"),
                cached_of_prompt: None,
                duration: std::time::Duration::ZERO,
            };
            prefixes.take_in(&watched);
            changes.take_in(&watched);
        }
        changes.look(&fleet, &prefixes, now);
        assert_eq!(changes.newest(), [], "nothing has changed");
        let drained = "http://127.0.0.1:2";
        let name = InstanceName { id: drained, endpoint: None, variant: None };
        fleet.set_draining(name, true).expect("it is there");
        changes.look(&fleet, &prefixes, now);
        fleet.set_draining(name, false).expect("it is there");
        changes.look(&fleet, &prefixes, now);
        let [back, away] = &changes.newest()[..] else { panic!("two changes") };
        assert_eq!((&away.went[..], &away.came[..], away.followed), (&[drained.to_owned()][..], &[][..], 40));
        assert!(away.moved > 2 && away.moved < 20, "about a quarter: {}", away.moved);
        assert!(away.moves.iter().all(|one| one.from == drained && one.to != drained));
        assert_eq!((back.moved, &back.came[..]), (away.moved, &[drained.to_owned()][..]), "keys come home");
        let text = metrics.expose(None).body;
        let count = |beginning: &str| -> usize {
            let lines = text.lines().filter(|line| line.starts_with(beginning));
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
        };
        assert_eq!(count("isotherm_compared_keys_total"), 80, "40 keys at each change");
        assert_eq!(count("isotherm_remapped_keys_total"), 2 * away.moved);
    }
}
