//! `LEAST_OUTSTANDING_REQUESTS`: the fewest in flight per weight; ties in turn, not always the first.

use super::{Candidate, Open, Pick};
use crate::variant::Instance;
use crate::{Reason, Time};

/// `cursor` is the index behind the one chosen last: among equals, the first from there on is next.
pub(super) fn pick<T>(open: &Open<'_, T>, cursor: usize) -> Option<Pick> {
    let from_cursor = open.iter().filter(|(candidate, _)| candidate.index >= cursor);
    let before_cursor = open.iter().filter(|(candidate, _)| candidate.index < cursor);
    let least = least(from_cursor.chain(before_cursor), open.now)?;
    Some(Pick::new(least, Reason::LeastOutstanding))
}

/// The first among those that have the least to do for their weight.
pub(super) fn least<'a, T: 'a>(
    candidates: impl Iterator<Item = (Candidate, &'a Instance<T>)>,
    now: Time,
) -> Option<Candidate> {
    let mut least: Option<(Candidate, f64)> = None;
    for (candidate, instance) in candidates {
        let load = instance.load(now) / instance.weight_at(now).get();
        if least.is_none_or(|(_, fewest)| load < fewest) {
            least = Some((candidate, load));
        }
    }
    least.map(|(candidate, _)| candidate)
}
