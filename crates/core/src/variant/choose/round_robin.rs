//! `ROUND_ROBIN`: one after the other, by weight.
//!
//! The smooth form: everyone's credit grows by its weight, the richest is chosen and pays the sum of the weights. With
//! equal weights that is the plain order of the list; with unequal ones the heavy are spread out, not bunched.

use super::{Candidate, Open, Pick};
use crate::Reason;
use crate::variant::VariantState;

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
    pub(super) fn take_turn(&mut self, candidates: &[Candidate], chosen: Candidate) {
        let mut sum = 0.0;
        for candidate in candidates {
            let instance = &mut self.instances[candidate.index];
            let weight = instance.weight.get();
            sum += weight;
            // An instance that can't be chosen for a while must not save up for a burst.
            instance.credit = (instance.credit + weight).min(2.0 * weight * candidates.len() as f64);
        }
        self.instances[chosen.index].credit -= sum;
    }
}
