//! How the simulated router chooses: the strategies of `isotherm-core`, and rules that others published.

mod core_strategy;

use isotherm_core::{InstanceId, Reason, Refusal, Slot, Time};
use isotherm_workload::PlannedRequest;
use rand_pcg::Pcg64;

pub(crate) use self::core_strategy::CoreStrategy;
use crate::prompt::Beginning;

/// A rule by which requests are placed, and what it learns from.
///
/// It sees what a router can see: prompts, its own decisions, when answers begin and end, and what usage they report.
/// It does not see the engines. Instances have numbers that are never used twice.
pub trait Router: Send {
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
pub struct Routed<'a> {
    /// Tells attempts apart: a request that is sent again is another one.
    pub number: u32,
    /// The request with its session, its tenant and its prompt. Its answer is not known yet: looking at it is cheating.
    pub request: &'a PlannedRequest,
    /// The prompt up to the end of each piece; the last is the whole prompt.
    pub beginnings: &'a [Beginning],
    /// The instances that failed it already.
    pub tried: &'a [u32],
}

impl Routed<'_> {
    /// Length of the prompt in tokens.
    pub fn prompt_tokens(&self) -> u32 {
        self.beginnings.last().map_or(0, |whole| whole.tokens)
    }
}

/// Where a request goes.
#[derive(Debug)]
pub struct Placed {
    /// The instance's number.
    pub instance: u32,
    /// Why that one.
    pub reason: Reason,
    /// The place in its count of requests in flight, where `isotherm-core` counts.
    pub slot: Option<Slot>,
}

/// What a router sees of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The attempt's number, as it was routed.
    pub number: u32,
    /// Who answered.
    pub instance: u32,
    /// When the request was chosen for the instance.
    pub sent: Time,
    /// When the first token came; `None` if none came.
    pub first_token: Option<Time>,
    /// Prompt tokens, as usage reports them; known with the end of the answer.
    pub prompt_tokens: u32,
    /// Of these the cached ones, as usage reports them; known with the end of the answer.
    pub cached_tokens: u32,
    /// Tokens of the answer so far.
    pub output_tokens: u32,
    /// The request failed: its instance broke down.
    pub failed: bool,
}
