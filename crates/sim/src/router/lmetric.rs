//! `LMETRIC`: the least product of new prompt tokens and batch size (arXiv 2603.15202), which has no parameters.
//!
//! New tokens are those of this prompt and of the prompts before it that are not cached; the batch is what is in flight,
//! this request included. What is cached is believed from what was sent, within 2 million tokens an instance; the paper
//! reads it from the engines.

use isotherm_core::{InstanceId, Reason, Refusal, Slot, Time};
use rand_pcg::Pcg64;

use super::history::History;
use super::tally::Tally;
use super::{Answer, Placed, Routed, Router};

const MEMORY_TOKENS: u64 = 2_000_000;

#[derive(Debug)]
pub(crate) struct LMetric {
    tally: Tally,
    history: History,
    held: Vec<u32>,
}

impl LMetric {
    pub(crate) fn new() -> LMetric {
        LMetric { tally: Tally::default(), history: History::new(MEMORY_TOKENS), held: Vec::new() }
    }

    fn uncached(&self, request: &Routed<'_>, instance: u32) -> u64 {
        // The last token is always computed.
        u64::from(request.prompt_tokens() - self.held.get(instance as usize).copied().unwrap_or(0)).max(1)
    }
}

impl Router for LMetric {
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
        let product = |instance: u32| {
            let load = self.tally.load(instance);
            (load.uncached_tokens + self.uncached(request, instance)) * u64::from(load.in_flight + 1)
        };
        let chosen =
            self.tally.open(request).min_by_key(|&instance| (product(instance), self.tally.rank(first, instance)));
        let instance = chosen.ok_or(Refusal::Unavailable)?;
        let uncached = self.uncached(request, instance);
        let warm = u64::from(request.prompt_tokens()) > 2 * uncached;
        self.history.note(request.beginnings, instance);
        self.tally.count(request.number, instance, uncached);
        Ok(Placed { instance, reason: if warm { Reason::Home } else { Reason::LeastOutstanding }, slot: None })
    }

    fn first_token(&mut self, answer: &Answer, _slot: Option<&mut Slot>, _now: Time) {
        self.tally.first_token(answer);
    }

    fn finish(&mut self, answer: &Answer, _slot: Option<Slot>, _now: Time) {
        self.tally.finish(answer);
    }
}
