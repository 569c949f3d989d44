//! How the simulated router chooses: the strategies of `isotherm-core`, and rules that others published.

mod cache_aware;
mod chwbl;
mod core_strategy;
mod history;
mod lmetric;
mod session_hash;
mod sticky;
mod tally;
#[cfg(test)]
mod tests;

use isotherm_core::{InstanceId, Reason, Refusal, Slot, Time};
use isotherm_workload::PlannedRequest;
use rand_pcg::Pcg64;

pub(crate) use self::cache_aware::CacheAware;
pub(crate) use self::chwbl::Chwbl;
pub(crate) use self::core_strategy::CoreStrategy;
pub(crate) use self::lmetric::LMetric;
pub(crate) use self::session_hash::SessionHash;
pub(crate) use self::sticky::Sticky;
use crate::prompt::Beginning;

/// A rule by which requests are placed, and what it learns from.
///
/// It sees what a router can see: prompts, its own decisions, when answers begin and end, and what usage they report.
/// It does not see the engines. Instances have numbers that are never used twice.
pub(crate) trait Router: Send {
    /// An instance came into service.
    fn add(&mut self, instance: u32, id: &InstanceId, now: Time);

    /// An instance gets no more requests; those it has are finished.
    fn drain(&mut self, instance: u32, now: Time);

    /// An instance is gone, with all that it had cached.
    fn remove(&mut self, instance: u32, now: Time);

    /// Chooses an instance and counts the request there.
    ///
    /// # Errors
    /// When there is none.
    fn choose(&mut self, request: &Routed<'_>, now: Time, rng: &mut Pcg64) -> Result<Placed, Refusal>;

    /// The first token of a request came.
    fn first_token(&mut self, _answer: &Answer, _slot: Option<&mut Slot>, _now: Time) {}

    /// A request left its instance: answered in full, or failed.
    fn finish(&mut self, answer: &Answer, slot: Option<Slot>, now: Time);
}

/// What a router knows of a request that it is to place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routed<'a> {
    /// Tells attempts apart: a request that is sent again is another one.
    pub(crate) number: u32,
    /// The request with its session, its tenant and its prompt. Its answer is not known yet: looking at it is cheating.
    pub(crate) request: &'a PlannedRequest,
    /// The prompt up to the end of each piece; the last is the whole prompt.
    pub(crate) beginnings: &'a [Beginning],
    /// The instances that failed it already.
    pub(crate) tried: &'a [u32],
}

impl Routed<'_> {
    /// Length of the prompt in tokens.
    pub(crate) fn prompt_tokens(&self) -> u32 {
        self.beginnings.last().map_or(0, |whole| whole.tokens)
    }
}

/// Where a request goes.
#[derive(Debug)]
pub(crate) struct Placed {
    /// The instance's number.
    pub(crate) instance: u32,
    /// Why that one.
    pub(crate) reason: Reason,
    /// The place in its count of requests in flight, where `isotherm-core` counts.
    pub(crate) slot: Option<Slot>,
}

/// What a router sees of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// The attempt's number, as it was routed.
    pub(crate) number: u32,
    /// Prompt tokens, as usage reports them with the end of the answer.
    pub(crate) prompt_tokens: u32,
    /// Of these the cached ones, as usage reports them with the end of the answer.
    pub(crate) cached_tokens: u32,
    /// Tokens of the answer so far.
    pub(crate) output_tokens: u32,
    /// The request failed: its instance broke down.
    pub(crate) failed: bool,
}
