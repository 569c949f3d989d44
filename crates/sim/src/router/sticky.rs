//! `STICKY`: sticky until saturated, after the default of llm-d's router.
//!
//! Instances that hold at least 0.8 of the prompt are preferred; among them the one with the fewest uncached tokens in
//! flight, this prompt's included, wins. When the best of them has more than 16,384 such tokens more than the idlest
//! instance, all instances are candidates. (llm-d-router 0.10, `prefix-cache-affinity-filter` and the uncached-token
//! scorer; our approximation, without its scorer of active requests. Its memory is 31,250 blocks of 64 tokens an
//! instance.)

use isotherm_core::{InstanceId, Reason, Refusal, Slot, Time};
use rand_pcg::Pcg64;

use super::history::History;
use super::tally::Tally;
use super::{Answer, Placed, Routed, Router};

const AFFINITY: f64 = 0.8;
const SATURATION_TOKENS: u64 = 16_384;
const MEMORY_TOKENS: u64 = 31_250 * 64;

#[derive(Debug)]
pub(crate) struct Sticky {
    tally: Tally,
    history: History,
    held: Vec<u32>,
}

impl Sticky {
    pub(crate) fn new() -> Sticky {
        Sticky { tally: Tally::default(), history: History::new(MEMORY_TOKENS), held: Vec::new() }
    }

    /// Tokens of the prompt that an instance would have to compute.
    fn uncached(&self, request: &Routed<'_>, instance: u32) -> u64 {
        u64::from(request.prompt_tokens() - self.held.get(instance as usize).copied().unwrap_or(0))
    }
}

impl Router for Sticky {
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
        let first = request.beginnings.first().map_or(0, |first| first.hash);
        let most_uncached = ((1.0 - AFFINITY) * f64::from(request.prompt_tokens())) as u64;
        let before = |instance: u32| self.tally.load(instance).uncached_tokens;
        let is_warm = |instance: &u32| self.uncached(request, *instance) <= most_uncached;
        let idlest = self.tally.open(request).map(before).min().ok_or(Refusal::Unavailable)?;
        let warmest = self.tally.open(request).filter(is_warm).map(before).min();
        let stays = warmest.is_some_and(|warmest| warmest - idlest <= SATURATION_TOKENS);
        let candidates = self.tally.open(request).filter(|instance| !stays || is_warm(instance));
        let work = |instance: u32| before(instance) + self.uncached(request, instance);
        let chosen = candidates.min_by_key(|&instance| (work(instance), self.tally.rank(first, instance)));
        let instance = chosen.ok_or(Refusal::Unavailable)?;
        let reason = match warmest {
            Some(_) if stays => Reason::Home,
            Some(_) => Reason::Spill,
            None => Reason::LeastOutstanding,
        };
        let uncached = self.uncached(request, instance);
        self.history.note(request.beginnings, instance);
        self.tally.count(request.number, instance, uncached);
        Ok(Placed { instance, reason, slot: None })
    }

    fn first_token(&mut self, answer: &Answer, _slot: Option<&mut Slot>, _now: Time) {
        self.tally.first_token(answer);
    }

    fn finish(&mut self, answer: &Answer, _slot: Option<Slot>, _now: Time) {
        self.tally.finish(answer);
    }
}
