//! `CHWBL`: consistent hashing with bounded loads, as KubeAI publishes it.
//!
//! The first 100 characters are hashed onto a ring on which every instance has 256 places; from there the walk goes
//! clockwise to the first instance whose requests in flight, with this one, are at most 1.25 times the mean. If none
//! is, it stays at the first. (KubeAI 0.22, `internal/loadbalancer`; there the prefix is of the first user message.)

use isotherm_core::{HashSeed, InstanceId, PrefixLength, Reason, Refusal, Slot, Time};
use rand_pcg::Pcg64;

use super::tally::Tally;
use super::{Answer, Placed, Routed, Router};
use crate::prompt::{key, mix};

const PLACES: u64 = 256;
const LOAD_FACTOR: f64 = 1.25;
const PREFIX_CHARACTERS: u64 = 100;

#[derive(Debug)]
pub(crate) struct Chwbl {
    hash_seed: HashSeed,
    prefix_length: PrefixLength,
    tally: Tally,
    /// Places on the ring, ascending, and whose they are.
    ring: Vec<(u64, u32)>,
}

impl Chwbl {
    pub(crate) fn new(hash_seed: HashSeed) -> Chwbl {
        let prefix_length = PrefixLength::new(PREFIX_CHARACTERS).unwrap_or_default();
        Chwbl { hash_seed, prefix_length, tally: Tally::default(), ring: Vec::new() }
    }

    fn leave_ring(&mut self, instance: u32) {
        self.ring.retain(|(_, owner)| *owner != instance);
    }
}

impl Router for Chwbl {
    fn add(&mut self, instance: u32, id: &InstanceId, _now: Time) {
        self.tally.add(instance, id);
        let places = (0..PLACES).map(|place| (self.tally.rank(mix(place), instance), instance));
        self.ring.extend(places);
        self.ring.sort_unstable();
    }

    fn drain(&mut self, instance: u32, _now: Time) {
        self.tally.drain(instance);
        self.leave_ring(instance);
    }

    fn remove(&mut self, instance: u32, _now: Time) {
        self.tally.remove(instance);
        self.leave_ring(instance);
    }

    fn choose(&mut self, request: &Routed<'_>, _now: Time, _rng: &mut Pcg64) -> Result<Placed, Refusal> {
        let hashed = key(self.hash_seed, self.prefix_length, request.request).map_or(0, |key| key.as_u128() as u64);
        let start = self.ring.partition_point(|(place, _)| *place < hashed);
        let clockwise = self.ring[start..].iter().chain(&self.ring[..start]).map(|(_, instance)| *instance);
        let mut open = clockwise.filter(|instance| !request.tried.contains(instance));
        let total: u32 = self.tally.serving().iter().map(|&instance| self.tally.load(instance).in_flight).sum();
        let bound = LOAD_FACTOR * f64::from(total + 1) / self.tally.serving().len() as f64;
        let fits = |instance: &u32| total == 0 || f64::from(self.tally.load(*instance).in_flight + 1) <= bound;
        let home = open.clone().next().ok_or(Refusal::Unavailable)?;
        let instance = open.find(fits).unwrap_or(home);
        self.tally.count(request.number, instance, 0);
        let reason = if instance == home { Reason::Home } else { Reason::Spill };
        Ok(Placed { instance, reason, slot: None })
    }

    fn finish(&mut self, answer: &Answer, _slot: Option<Slot>, _now: Time) {
        self.tally.finish(answer);
    }
}
