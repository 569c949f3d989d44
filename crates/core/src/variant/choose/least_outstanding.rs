//! `LEAST_OUTSTANDING_REQUESTS`: the fewest in flight per weight; ties in turn, not always the first.

use super::{Candidate, Open, Pick};
use crate::variant::Instance;
use crate::{Reason, Time};

/// Among equals, whose turn was the longest ago is next. So turns are fair among any of the instances: those that serve
/// one model lose none to those of another.
pub(super) fn pick<T>(open: &Open<'_, T>) -> Option<Pick> {
    let loads =
        open.iter().map(|(candidate, instance)| (candidate, load_for_weight(instance, open.now), instance.turn));
    let least = loads.min_by(|(_, load, turn), (_, fewest, longest)| load.total_cmp(fewest).then(turn.cmp(longest)));
    least.map(|(candidate, ..)| Pick::new(candidate, Reason::LeastOutstanding))
}

/// The first among those that have the least to do for their weight.
pub(super) fn least<'a, T: 'a>(
    candidates: impl Iterator<Item = (Candidate, &'a Instance<T>)>,
    now: Time,
) -> Option<Candidate> {
    let loads = candidates.map(|(candidate, instance)| (candidate, load_for_weight(instance, now)));
    loads.min_by(|(_, load), (_, fewest)| load.total_cmp(fewest)).map(|(candidate, _)| candidate)
}

fn load_for_weight<T>(instance: &Instance<T>, now: Time) -> f64 {
    instance.load(now) / instance.weight_at(now).get()
}
