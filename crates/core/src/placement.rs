//! Weighted rendezvous hashing: each key ranks all instances in an order of its own, and its home is the first.
//!
//! Removing an instance moves only the keys whose home it was, each to its own second choice; adding one takes over
//! 1/(n+1) of the keys and moves no other (Thaler and Ravishankar, "Using name-based mappings to increase hit rates",
//! 1998). Weights enter by the logarithmic method: with u uniform in (0, 1), the instance with the least −ln(u)/w is
//! first with probability w over the sum of weights.

use std::cmp::Ordering;

use xxhash_rust::xxh3::xxh3_64;

use crate::{InstanceId, PrefixKey, Weight};

/// An instance's id as a number, computed once when the instance is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstanceHash(u64);

impl InstanceHash {
    /// The hash of an id.
    fn of(id: &InstanceId) -> InstanceHash {
        InstanceHash(xxh3_64(id.as_str().as_bytes()))
    }
}

/// Where an instance stands, as rendezvous hashing sees it: by itself, or as a copy on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// What keys rank first: the host of a copy, else the instance itself.
    rank: InstanceHash,
    /// What they rank among those of one host.
    copy: Option<InstanceHash>,
}

impl Standing {
    pub(crate) fn of(id: &InstanceId, host: Option<&InstanceId>) -> Standing {
        let own = InstanceHash::of(id);
        host.map_or(Standing { rank: own, copy: None }, |host| Standing {
            rank: InstanceHash::of(host),
            copy: Some(own),
        })
    }

    /// Whether both are copies on one host.
    pub(crate) fn is_beside(self, other: Standing) -> bool {
        self.copy.is_some() && other.copy.is_some() && self.rank == other.rank
    }
}

/// How far an instance stands from the front of a key's order: the lower, the earlier. Copies stand together with those
/// on the same host.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Distance {
    rank: f64,
    copy: f64,
}

impl Distance {
    pub(crate) fn of(key: PrefixKey, standing: Standing, weight: Weight) -> Distance {
        Distance::unweighed(key, standing).weighed(weight)
    }

    /// Among instances of one weight: the same order as that of their distances, without a logarithm.
    pub(crate) fn unweighed(key: PrefixKey, standing: Standing) -> Distance {
        Distance { rank: -uniform(key, standing.rank), copy: standing.copy.map_or(-1.0, |copy| -uniform(key, copy)) }
    }

    /// What was unweighed, among instances of several weights.
    pub(crate) fn weighed(self, weight: Weight) -> Distance {
        let of_number = |negative: f64| -(-negative).ln() / weight.get();
        Distance { rank: of_number(self.rank), copy: of_number(self.copy) }
    }

    pub(crate) fn total_cmp(&self, other: &Distance) -> Ordering {
        self.rank.total_cmp(&other.rank).then_with(|| self.copy.total_cmp(&other.copy))
    }
}

/// A number between 0 and 1 that a key draws for an instance.
fn uniform(key: PrefixKey, instance: InstanceHash) -> f64 {
    let mut bytes = [0; 24];
    bytes[..16].copy_from_slice(&key.as_u128().to_le_bytes());
    bytes[16..].copy_from_slice(&instance.0.to_le_bytes());
    // The 53 high bits fill a double's mantissa; the half keeps u off 0, where the logarithm has no value.
    ((xxh3_64(&bytes) >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
}

/// The homes of keys among a set of instances, for whoever compares two sets: which keys a change of the fleet moves.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Homes {
    members: Vec<(InstanceId, Standing, Weight)>,
}

impl Homes {
    /// Among these instances and their weights; each stands for itself, none is a copy on another.
    pub fn among<'i>(instances: impl Iterator<Item = (&'i InstanceId, Weight)>) -> Homes {
        Homes { members: instances.map(|(id, weight)| (id.clone(), Standing::of(id, None), weight)).collect() }
    }

    /// The instance that a key ranks first; `None` where there is none.
    pub fn home(&self, key: PrefixKey) -> Option<&InstanceId> {
        let distances = self.members.iter().map(|(id, standing, weight)| (id, Distance::of(key, *standing, *weight)));
        distances.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(id, _)| id)
    }

    /// The instances.
    pub fn ids(&self) -> impl Iterator<Item = &InstanceId> {
        self.members.iter().map(|(id, ..)| id)
    }
}

/// A number from 0 to 99 that is independent of the key's order of instances, for partial rollouts.
pub(crate) fn percentile(key: PrefixKey) -> u8 {
    let key = key.as_u128();
    let mixed = xxh3_64(&(key as u64 ^ (key >> 64) as u64).to_le_bytes());
    ((u128::from(mixed) * 100) >> 64) as u8
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    fn hashes(n: usize) -> Vec<InstanceHash> {
        (0..n).map(|i| InstanceHash::of(&InstanceId::from(format!("http://10.0.0.{i}:8000").as_str()))).collect()
    }

    fn keys(n: usize, seed: u64) -> Vec<PrefixKey> {
        let mut rng = Pcg64::seed_from_u64(seed);
        (0..n).map(|_| PrefixKey::from_u128(u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()))).collect()
    }

    fn home(key: PrefixKey, instances: &[(InstanceHash, Weight)]) -> usize {
        let standing = |rank| Standing { rank, copy: None };
        let distances = instances.iter().map(|&(hash, weight)| Distance::of(key, standing(hash), weight));
        distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0
    }

    fn equal(hashes: &[InstanceHash]) -> Vec<(InstanceHash, Weight)> {
        hashes.iter().map(|&hash| (hash, Weight::ONE)).collect()
    }

    #[test]
    fn golden_homes_stay_where_they_are() {
        let instances = equal(&hashes(7));
        let homes: Vec<usize> = keys(12, 0).into_iter().map(|key| home(key, &instances)).collect();
        assert_eq!(homes, GOLDEN_HOMES);
    }

    #[test]
    fn whoever_compares_two_fleets_finds_the_homes_that_requests_find() {
        let ids: Vec<InstanceId> =
            (0..7).map(|i| InstanceId::from(format!("http://10.0.0.{i}:8000").as_str())).collect();
        let homes = Homes::among(ids.iter().map(|id| (id, Weight::ONE)));
        let found: Vec<_> = keys(12, 0).into_iter().map(|key| homes.home(key).unwrap().clone()).collect();
        assert_eq!(found, GOLDEN_HOMES.map(|home| ids[home].clone()));
        assert!(homes.ids().eq(&ids));
        assert_eq!(Homes::default().home(keys(1, 0)[0]), None);
    }

    const GOLDEN_HOMES: [usize; 12] = [5, 1, 0, 4, 5, 2, 2, 1, 4, 6, 4, 0];

    #[test]
    fn instances_of_one_weight_stand_in_the_order_that_weights_would_give_them() {
        let hashes = hashes(60);
        let standings: Vec<Standing> =
            (0..60).map(|i| Standing { rank: hashes[i % 20], copy: (i >= 20).then_some(hashes[i]) }).collect();
        let half = Weight::new(0.5).unwrap();
        for key in keys(200, 7) {
            let order = |distance: &dyn Fn(Standing) -> Distance| {
                let mut order: Vec<usize> = (0..standings.len()).collect();
                order.sort_by(|&a, &b| distance(standings[a]).total_cmp(&distance(standings[b])));
                order
            };
            assert_eq!(
                order(&|standing| Distance::unweighed(key, standing)),
                order(&|standing| Distance::of(key, standing, half))
            );
        }
    }

    #[test]
    fn an_instance_stands_before_the_copies_on_it_and_they_beside_each_other() {
        let [host, one, other] = ["host", "one", "other"].map(|id| Standing::of(&id.into(), Some(&"host".into())));
        let itself = Standing::of(&"host".into(), None);
        for key in keys(50, 8) {
            for distance in [Distance::unweighed, |key, standing| Distance::of(key, standing, Weight::ONE)] {
                let [itself, one, other] = [itself, one, other].map(|standing| distance(key, standing));
                assert!(itself.total_cmp(&one).is_lt() && itself.total_cmp(&other).is_lt());
            }
        }
        let elsewhere = Standing::of(&"one".into(), Some(&"elsewhere".into()));
        let beside = [(one, other), (host, one), (one, elsewhere), (itself, one), (one, itself), (itself, itself)];
        assert_eq!(beside.map(|(one, other)| one.is_beside(other)), [true, true, false, false, false, false]);
    }

    #[test]
    fn golden_percentiles_stay_where_they_are() {
        assert_eq!(keys(12, 0).into_iter().map(percentile).collect::<Vec<u8>>(), GOLDEN_PERCENTILES);
    }

    const GOLDEN_PERCENTILES: [u8; 12] = [96, 41, 18, 61, 38, 30, 33, 19, 65, 45, 33, 71];

    #[test]
    fn keys_spread_evenly_over_equal_instances() {
        let instances = equal(&hashes(7));
        let mut counts = [0u32; 7];
        for key in keys(100_000, 1) {
            counts[home(key, &instances)] += 1;
        }
        let mean = 100_000.0 / 7.0;
        let most = f64::from(*counts.iter().max().unwrap());
        assert!(most / mean <= 1.03, "{counts:?}");
    }

    #[test]
    fn removing_an_instance_moves_only_its_keys_and_spreads_them_over_all_others() {
        for n in [2usize, 3, 7, 20, 50] {
            let before = equal(&hashes(n));
            let gone = n / 2;
            let after: Vec<_> = before.iter().enumerate().filter(|(i, _)| *i != gone).map(|(_, x)| *x).collect();
            let mut moved_to = vec![0u32; n];
            let mut moved = 0;
            // Enough moved keys that 1.5 times an instance's part lies more than five standard deviations away.
            let wanted = (200 * (n - 1)).max(200);
            for key in keys(wanted * n + wanted * n / 5, 2) {
                let old = home(key, &before);
                let new = home(key, &after);
                let new = if new >= gone { new + 1 } else { new };
                if old == gone {
                    moved += 1;
                    moved_to[new] += 1;
                } else {
                    assert_eq!(old, new, "a key moved whose home stayed");
                }
            }
            assert!(moved >= 200);
            let part = f64::from(moved) / (n - 1) as f64;
            for (i, &count) in moved_to.iter().enumerate().filter(|(i, _)| *i != gone) {
                assert!(f64::from(count) <= 1.5 * part, "n={n}: instance {i} took {count} of {moved} moved keys");
                assert!(count > 0, "n={n}: instance {i} took none");
            }
        }
    }

    #[test]
    fn adding_an_instance_moves_its_part_of_the_keys_and_all_of_them_to_it() {
        for n in [1usize, 2, 3, 7, 20, 50] {
            let after = equal(&hashes(n + 1));
            let before = &after[..n];
            let keys = keys(20_000, 3);
            let mut moved = 0;
            for &key in &keys {
                let new = home(key, &after);
                if new == n {
                    moved += 1;
                } else {
                    assert_eq!(new, home(key, before));
                }
            }
            let share = f64::from(moved) / keys.len() as f64;
            assert!((share - 1.0 / (n + 1) as f64).abs() <= 0.02, "n={n}: {share}");
        }
    }

    #[test]
    fn weights_are_honoured() {
        let weights = [1.0, 2.0, 0.5, 4.5];
        let instances: Vec<_> =
            hashes(4).into_iter().zip(weights).map(|(hash, weight)| (hash, Weight::new(weight).unwrap())).collect();
        let mut counts = [0u32; 4];
        for key in keys(80_000, 4) {
            counts[home(key, &instances)] += 1;
        }
        for (count, weight) in counts.into_iter().zip(weights) {
            let expected = 80_000.0 * weight / 8.0;
            assert!((f64::from(count) / expected - 1.0).abs() < 0.05, "{counts:?}");
        }
    }

    #[test]
    fn a_changed_weight_moves_keys_only_to_or_from_that_instance() {
        let before = equal(&hashes(5));
        let mut after = before.clone();
        after[2].1 = Weight::new(2.0).unwrap();
        for key in keys(5_000, 5) {
            let (old, new) = (home(key, &before), home(key, &after));
            assert!(old == new || new == 2, "heavier instance 2 only gains");
        }
    }

    #[test]
    fn percentiles_are_even_and_independent_of_the_home() {
        let instances = equal(&hashes(4));
        let mut low = [0u32; 4];
        let mut all = [0u32; 4];
        for key in keys(40_000, 6) {
            let home = home(key, &instances);
            all[home] += 1;
            low[home] += u32::from(percentile(key) < 30);
            assert!(percentile(key) < 100);
        }
        for (low, all) in low.into_iter().zip(all) {
            assert!((f64::from(low) / f64::from(all) - 0.3).abs() < 0.02);
        }
    }
}
