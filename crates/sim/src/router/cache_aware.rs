//! `CACHE_AWARE`: the rule of SGLang's router and what came of it (SMG, vLLM's router), with its published defaults.
//!
//! While the fleet is balanced, a prompt goes to the instance that holds the longest beginning of it, if that is more
//! than 0.3 of it, else to the least loaded. Balance is a matter of the whole fleet: when the most loaded has more than
//! 64 requests and more than 1.5 times as many as the least loaded, every request goes to the least loaded. (SMG 1.9,
//! `model_gateway/src/policies/cache_aware.rs`; there the tree holds characters, 67 million for each instance.)

use std::cmp::Reverse;

use isotherm_core::{InstanceId, Reason, Refusal, Slot, Time};
use rand_pcg::Pcg64;

use super::history::History;
use super::tally::Tally;
use super::{Answer, Placed, Routed, Router};

const CACHE_THRESHOLD: f64 = 0.3;
const BALANCE_ABSOLUTE: u32 = 64;
const BALANCE_RELATIVE: f64 = 1.5;
/// 67 million characters at 4.2 a token.
const TREE_TOKENS: u64 = 16_000_000;

#[derive(Debug)]
pub(crate) struct CacheAware {
    tally: Tally,
    history: History,
    held: Vec<u32>,
}

impl CacheAware {
    pub(crate) fn new() -> CacheAware {
        CacheAware { tally: Tally::default(), history: History::new(TREE_TOKENS), held: Vec::new() }
    }

    fn is_imbalanced(&self) -> bool {
        let loads = || self.tally.serving().iter().map(|&instance| self.tally.load(instance).in_flight);
        let (least, most) = (loads().min().unwrap_or(0), loads().max().unwrap_or(0));
        most - least > BALANCE_ABSOLUTE && f64::from(most) > BALANCE_RELATIVE * f64::from(least)
    }

    fn held(&self, instance: u32) -> u32 {
        self.held.get(instance as usize).copied().unwrap_or(0)
    }
}

impl Router for CacheAware {
    fn add(&mut self, instance: u32, id: &InstanceId, _now: Time) {
        self.tally.add(instance, id);
    }

    fn drain(&mut self, instance: u32, _now: Time) {
        self.tally.drain(instance);
    }

    fn remove(&mut self, instance: u32, _now: Time) {
        self.tally.remove(instance);
        self.history.forget(instance);
    }

    fn choose(&mut self, request: &Routed<'_>, _now: Time, _rng: &mut Pcg64) -> Result<Placed, Refusal> {
        self.history.held(request.beginnings, &mut self.held);
        let key = request.number.into();
        let by_match = |instance: u32| (self.held(instance), Reverse(self.tally.load(instance).in_flight));
        let longest = self.tally.open(request).max_by_key(|&instance| by_match(instance));
        let longest = longest.ok_or(Refusal::Unavailable)?;
        let matched = f64::from(self.held(longest)) > CACHE_THRESHOLD * f64::from(request.prompt_tokens());
        let imbalanced = self.is_imbalanced();
        let (instance, reason) = if matched && !imbalanced {
            (longest, Reason::Home)
        } else {
            let least = self.tally.least_loaded(key, self.tally.open(request)).unwrap_or(longest);
            (least, if matched { Reason::Spill } else { Reason::LeastOutstanding })
        };
        self.history.note(request.beginnings, instance);
        self.tally.count(request.number, instance, 0);
        Ok(Placed { instance, reason, slot: None })
    }

    fn finish(&mut self, answer: &Answer, _slot: Option<Slot>, _now: Time) {
        self.tally.finish(answer);
    }
}
