//! `ROUND_ROBIN`: one after the other, by weight.
//!
//! The smooth form: everyone's credit grows by its weight, the richest is chosen and pays the sum of the weights. With
//! equal weights that is the plain order of the list; with unequal ones the heavy are spread out, not bunched.

use super::{Candidate, Open, Pick};
use crate::variant::VariantState;
use crate::{Generation, Reason};

pub(super) fn pick<T>(open: &Open<'_, T>) -> Option<Pick> {
    let mut richest: Option<(Candidate, f64)> = None;
    for (candidate, instance) in open.iter() {
        let credit = instance.credit + instance.weight.get();
        if richest.is_none_or(|(_, most)| credit > most) {
            richest = Some((candidate, credit));
        }
    }
    richest.map(|(candidate, _)| Pick::new(candidate, Reason::RoundRobin))
}

impl<T: Clone> VariantState<T> {
    /// Who can't take a request now has no turn, and saves none up for a burst.
    pub(super) fn take_turn(&mut self, candidates: &[Candidate], tried: &[Generation], chosen: Candidate) {
        let mut sum = 0.0;
        for candidate in candidates {
            let instance = &mut self.instances[candidate.index];
            if instance.has_room() && !tried.contains(&instance.generation) {
                let weight = instance.weight.get();
                sum += weight;
                instance.credit += weight;
            }
        }
        self.instances[chosen.index].credit -= sum;
    }
}
