//! How many of the keys seen lately a change of the fleet moves, and to whom: for the metrics.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use isotherm_core::{Availability, Homes, PrefixKey, Strategy};
use isotherm_fleet::{Fleet, Variant};
use isotherm_telemetry::WatchedKey;

/// How many of a variant's keys are compared at a change: the last ones.
const COMPARED: usize = 2_048;

/// The keys and homes of every variant whose strategy has homes.
#[derive(Default)]
pub(crate) struct Remaps {
    variants: BTreeMap<(Arc<str>, Arc<str>), OfVariant>,
}

#[derive(Default)]
struct OfVariant {
    /// Newest last; a key may stand there more than once.
    keys: VecDeque<PrefixKey>,
    homes: Homes,
}

impl Remaps {
    /// Takes in a key of a finished request.
    pub(super) fn take_in(&mut self, watched: &WatchedKey) {
        let name = (Arc::clone(&watched.endpoint), Arc::clone(&watched.variant));
        let Some(of) = self.variants.get_mut(&name) else { return };
        if of.keys.len() >= COMPARED {
            of.keys.pop_front();
        }
        of.keys.push_back(watched.key);
    }

    /// Looks who may be chosen now; where that has changed, counts the keys that have another home.
    pub(super) fn look(&mut self, fleet: &Fleet) {
        let topology = fleet.topology();
        let mut before = std::mem::take(&mut self.variants);
        for variant in topology.variants() {
            let Some(homes) = homes_of(variant, fleet) else { continue };
            let name = (Arc::clone(variant.endpoint()), Arc::clone(variant.name()));
            let mut of = before.remove(&name).unwrap_or_default();
            if of.homes != homes && of.homes != Homes::default() {
                of.compare(&homes, variant);
            }
            of.homes = homes;
            self.variants.insert(name, of);
        }
    }
}

impl OfVariant {
    fn compare(&self, now: &Homes, variant: &Variant) {
        let mut keys: Vec<PrefixKey> = self.keys.iter().copied().collect();
        keys.sort_unstable();
        keys.dedup();
        let mut moved: BTreeMap<&str, u64> = BTreeMap::new();
        for key in &keys {
            if let (Some(from), Some(to)) = (self.homes.home(*key), now.home(*key))
                && from != to
            {
                *moved.entry(to.as_str()).or_default() += 1;
            }
        }
        variant.metrics().keys_compared(keys.len() as u64);
        moved.into_iter().for_each(|(instance, keys)| variant.metrics().keys_remapped(instance, keys));
    }
}

/// `None` where keys have no homes: under other strategies, and for inference components, whose copies go by their hosts.
fn homes_of(variant: &Variant, fleet: &Fleet) -> Option<Homes> {
    let has_homes = matches!(variant.routing().strategy, Strategy::PrefixAware(_)) && !variant.name().contains('/');
    let up = |instances: Vec<isotherm_fleet::InstanceNow>| {
        let up = instances.iter().filter(|one| one.availability == Availability::Up);
        Homes::among(up.map(|one| (one.instance.id(), one.weight)))
    };
    has_homes.then(|| up(variant.instances(fleet.clock().now())))
}
