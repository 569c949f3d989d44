//! `LEAST_OUTSTANDING_REQUESTS`: the fewest in flight per weight; ties in turn, not always the first.

use super::{Candidate, Open, Pick};
use crate::Reason;

/// `cursor` is the index behind the one chosen last: among equals, the first from there on is next.
pub(super) fn pick<T>(open: &Open<'_, T>, cursor: usize) -> Option<Pick> {
    let mut least: Option<(Candidate, f64)> = None;
    let from_cursor = open.iter().filter(|(candidate, _)| candidate.index >= cursor);
    let before_cursor = open.iter().filter(|(candidate, _)| candidate.index < cursor);
    for (candidate, instance) in from_cursor.chain(before_cursor) {
        let load = f64::from(instance.in_flight) / instance.weight.get();
        if least.is_none_or(|(_, fewest)| load < fewest) {
            least = Some((candidate, load));
        }
    }
    least.map(|(candidate, _)| Pick::new(candidate, Reason::LeastOutstanding))
}
