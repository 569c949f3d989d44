//! What becomes of a request after it was chosen for an instance, as far as later choices learn from it.

use super::VariantState;
use crate::{Slot, Time};

/// What an engine reported of a request; what it did not say is `None`, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Those of them that were found in the cache.
    pub cached_tokens: Option<u64>,
    /// Tokens of the answer.
    pub output_tokens: Option<u64>,
}

impl<T: Clone> VariantState<T> {
    /// The first token of a request has come.
    pub fn first_token(&mut self, slot: &mut Slot, now: Time) {
        if let Some(work) = &mut slot.work
            && let Some(at) = self.position(slot.generation)
        {
            self.adaptive.begin(work, &mut self.instances[at].beliefs, now);
        }
    }

    /// The whole answer to a request has come at once.
    pub fn answered(&mut self, slot: &mut Slot) {
        if let Some(work) = &mut slot.work
            && let Some(at) = self.position(slot.generation)
        {
            self.adaptive.answer(work, &mut self.instances[at].beliefs);
        }
    }

    /// The engine has reported what a request took.
    pub fn report(&mut self, slot: &Slot, report: &Report) {
        if let Some(work) = &slot.work
            && let Some(at) = self.position(slot.generation)
        {
            self.adaptive.learn(work, &mut self.instances[at].beliefs, report);
        }
    }

    /// Gives a slot back. False when the life that it counted on has ended, so that nothing became free.
    pub fn finish(&mut self, slot: Slot) -> bool {
        let Some(at) = self.position(slot.generation) else { return false };
        let instance = &mut self.instances[at];
        instance.in_flight -= 1;
        if let Some(work) = &slot.work {
            self.adaptive.end(work, &mut instance.beliefs);
        }
        true
    }
}
