//! `PREFIX_AWARE`: the key's home while it is below the concurrency threshold, else the next in the key's own order.

use super::{Open, Pick, least_outstanding, nearest};
use crate::{PrefixAware, Reason, SpillCause, SpillRule};

/// How far above the mean load the first of a key's order may stand when every instance is at the threshold.
///
/// Consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam, 2018) with ε = 1/4.
const LOAD_BOUND: f64 = 1.25;

pub(super) fn pick<T>(open: &Open<'_, T>, rules: PrefixAware) -> Option<Pick> {
    let threshold = rules.concurrency_threshold.get();
    let below = || open.iter().filter(|(_, instance)| instance.in_flight < threshold);
    let home = nearest(open.candidates.iter().copied())?;
    let first_below = nearest(below().map(|(candidate, _)| candidate));
    match first_below {
        // Another copy on the home instance is home, too.
        Some(first) if first.index == home.index || open.are_beside(first, home) => {
            Some(Pick::new(first, Reason::Home))
        }
        Some(next) => {
            let candidate = match rules.spill {
                SpillRule::Next => next,
                SpillRule::LeastOutstanding => least_outstanding::least(below(), open.now)?,
            };
            let at_threshold = open.instances[home.index].in_flight >= threshold;
            let cause = if at_threshold { SpillCause::Threshold } else { SpillCause::MaxInFlight };
            Some(Pick { candidate, reason: Reason::Spill, cause: Some(cause) })
        }
        None => saturated(open, rules.spill),
    }
}

/// Every instance is at the threshold: affinity must not vanish at peak load, and no instance may take it all.
fn saturated<T>(open: &Open<'_, T>, spill: SpillRule) -> Option<Pick> {
    let least = least_outstanding::least(open.iter(), open.now)?;
    if spill == SpillRule::LeastOutstanding {
        return Some(Pick::new(least, Reason::Saturated));
    }
    let all = open.candidates.iter().map(|candidate| &open.instances[candidate.index]);
    let (total, weights) = all.fold((0.0, 0.0), |(total, weights), instance| {
        (total + f64::from(instance.in_flight), weights + instance.weight.get())
    });
    let bound = |weight: f64| (LOAD_BOUND * (total + 1.0) * weight / weights).ceil();
    let within = open.iter().filter(|(_, instance)| f64::from(instance.in_flight) <= bound(instance.weight.get()));
    // Only where bounds of their own or earlier tries leave nobody within the load bound is it the least loaded.
    let candidate = nearest(within.map(|(candidate, _)| candidate)).unwrap_or(least);
    Some(Pick::new(candidate, Reason::Saturated))
}
