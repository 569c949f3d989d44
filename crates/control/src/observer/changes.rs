//! What changes of the fleet moved: which of the prefixes asked for most got another home, and where.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use isotherm_core::{Availability, PrefixKey, Strategy};
use isotherm_fleet::{Fleet, Variant};
use serde::Serialize;

use super::prefixes::Prefixes;
use super::requests::unix_seconds;

/// How many changes are kept.
const KEPT: usize = 20;

/// How many prefixes of a variant have their homes followed.
const FOLLOWED: usize = 50;

/// How many moved prefixes are told of a change, hottest first.
const TOLD: usize = 20;

/// The last changes of the fleet.
#[derive(Default)]
pub(crate) struct Changes {
    newest_last: VecDeque<FleetChange>,
    variants: BTreeMap<(Arc<str>, Arc<str>), Homes>,
}

/// How a variant stood when it was looked at last.
#[derive(Default)]
struct Homes {
    available: BTreeSet<String>,
    homes: BTreeMap<PrefixKey, String>,
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
    /// How many prefixes had a home that was followed, and how many of them got another.
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

    /// Looks at every variant, and notes what has changed since the last look.
    pub(super) fn look(&mut self, fleet: &Fleet, prefixes: &Prefixes, now: SystemTime) {
        let topology = fleet.topology();
        let mut before = std::mem::take(&mut self.variants);
        for variant in topology.variants() {
            let name = (Arc::clone(variant.endpoint()), Arc::clone(variant.name()));
            let keys = prefixes.hottest_keys(variant.endpoint(), variant.name(), FOLLOWED);
            let homes = Homes::of(variant, &keys, fleet.clock().now());
            // A variant that is new has had no home yet.
            if let Some(change) = before.remove(&name).and_then(|before| before.until(&homes, &keys, variant, now)) {
                self.newest_last.push_back(change);
            }
            self.variants.insert(name, homes);
        }
        let beyond = self.newest_last.len().saturating_sub(KEPT);
        self.newest_last.drain(..beyond);
    }
}

impl Homes {
    fn of(variant: &Variant, keys: &[PrefixKey], now: isotherm_core::Time) -> Homes {
        let instances = variant.instances(now);
        let available = instances.iter().filter(|one| one.availability == Availability::Up);
        let available = available.map(|one| one.instance.id().to_string()).collect();
        // Only there are keys those of homes.
        let keys = if matches!(variant.routing().strategy, Strategy::PrefixAware(_)) { keys } else { &[] };
        let home = |key: &PrefixKey| {
            let order = variant.order(*key, None, now);
            let home = order.iter().find(|one| one.eligible)?;
            Some((*key, home.now.instance.id().to_string()))
        };
        Homes { available, homes: keys.iter().filter_map(home).collect() }
    }

    fn until(&self, after: &Homes, hottest: &[PrefixKey], variant: &Variant, now: SystemTime) -> Option<FleetChange> {
        if self.available == after.available {
            return None;
        }
        let both = || hottest.iter().filter_map(|key| Some((key, self.homes.get(key)?, after.homes.get(key)?)));
        let moves: Vec<Move> = both()
            .filter(|(_, from, to)| from != to)
            .map(|(key, from, to)| Move { key: key.to_string(), from: from.clone(), to: to.clone() })
            .collect();
        Some(FleetChange {
            time: unix_seconds(now),
            endpoint: Arc::clone(variant.endpoint()),
            variant: Arc::clone(variant.name()),
            came: after.available.difference(&self.available).cloned().collect(),
            went: self.available.difference(&after.available).cloned().collect(),
            followed: both().count(),
            moved: moves.len(),
            moves: moves.into_iter().take(TOLD).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use isotherm_config::{Config, Environment, Overrides};
    use isotherm_core::InstanceId;
    use isotherm_fleet::{Clock, InstanceName};
    use isotherm_telemetry::{Metrics, WatchedKey};

    use super::*;

    fn fleet() -> Fleet {
        let instances = (1..=4).map(|port| format!("http://127.0.0.1:{port}")).collect();
        let overrides = Overrides { instances, port: Some("0".to_owned()), ..Overrides::default() };
        let config = Config::load(None, &std::iter::empty().collect::<Environment>(), &overrides).expect("valid");
        Fleet::new(&config, Arc::new(Metrics::new("test")), Clock::start())
    }

    #[test]
    fn only_what_was_at_home_on_a_drained_instance_moves() {
        let fleet = fleet();
        let (mut prefixes, mut changes) = (Prefixes::default(), Changes::default());
        let variant = Arc::clone(fleet.topology().variants().next().expect("a variant"));
        for key in 0..40 {
            prefixes.take_in(&WatchedKey {
                key: PrefixKey::from_u128(key),
                endpoint: Arc::clone(variant.endpoint()),
                variant: Arc::clone(variant.name()),
                instance: InstanceId::new("http://127.0.0.1:1"),
                cached_of_prompt: None,
                duration: std::time::Duration::ZERO,
            });
        }
        let now = SystemTime::now();
        changes.look(&fleet, &prefixes, now);
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
    }
}
