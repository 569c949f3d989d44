//! Target tracking: keeps a metric, which falls as capacity grows, at a value.
//!
//! Out at once and in proportion: as soon as the metric was above its target in every period of a short span. In slowly:
//! when it was below nine tenths of the target in every period of a long span, a tenth of the capacity at a time.
//! Application Auto Scaling does the same with two alarms, of 3 and 15 periods, and publishes no more than that; the
//! tenth is ours.

use super::{Situation, Wish};
use crate::record::TargetTracking;

/// Below this share of the target, capacity is too much.
const TOO_LITTLE: f64 = 0.9;

/// What the metric was, by period, the last one last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured<'v> {
    /// The periods of the span before scaling in; `None` where nothing was measured.
    pub(crate) values: &'v [Option<f64>],
    /// How many of the last of these count for scaling out.
    pub(crate) for_out: usize,
    /// Whether the metric was looked at during the whole span, so that what is missing was not there.
    pub(crate) for_in: bool,
}

/// What a policy wants.
pub(crate) fn by_tracking(policy: &TargetTracking, situation: &Situation, measured: Measured<'_>) -> Wish {
    match out(policy, situation, measured) {
        Some(wanted) => Wish::Out(wanted),
        None if policy.disable_scale_in => Wish::Abstain,
        None => scale_in(policy, situation, measured).map_or(Wish::Stay, Wish::In),
    }
}

fn out(policy: &TargetTracking, situation: &Situation, measured: Measured<'_>) -> Option<u32> {
    let recent = &measured.values[measured.values.len().saturating_sub(measured.for_out)..];
    let recent: Vec<f64> = recent.iter().copied().collect::<Option<_>>()?;
    if recent.len() < measured.for_out || recent.iter().any(|value| *value <= policy.target_value) {
        return None;
    }
    // While it cools down, what the last change added has not told on the metric yet: only a greater need counts,
    // reckoned from the capacity before it.
    let cooling = situation.last_out.filter(|_| situation.cools_down(situation.last_out, policy.scale_out_cooldown));
    let base = cooling.map_or(situation.capacity.running, |change| change.from);
    let average = recent.iter().sum::<f64>() / recent.len() as f64;
    let wanted = situation.bounded((f64::from(base) * average / policy.target_value).ceil());
    (wanted > situation.capacity.desired).then_some(wanted)
}

fn scale_in(policy: &TargetTracking, situation: &Situation, measured: Measured<'_>) -> Option<u32> {
    let cools_down = situation.cools_down(situation.last_out, policy.scale_out_cooldown)
        || situation.cools_down(situation.last_in, policy.scale_in_cooldown);
    // Nothing measured is no load.
    let highest = measured.values.iter().copied().flatten().fold(0.0, f64::max);
    if !measured.for_in || cools_down || highest >= policy.target_value * TOO_LITTLE {
        return None;
    }
    let desired = situation.capacity.desired;
    let needed = (f64::from(desired) * highest / policy.target_value).ceil();
    let step = (desired / 10).max(1);
    let wanted = situation.bounded(needed.max(f64::from(desired.saturating_sub(step))));
    (wanted < desired).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Change, PredefinedMetric, TrackedMetric};
    use crate::resource::Capacity;

    fn policy() -> TargetTracking {
        TargetTracking {
            target_value: 10.0,
            metric: TrackedMetric::Predefined(PredefinedMetric::ConcurrencyPerInstance),
            scale_out_cooldown: 300,
            scale_in_cooldown: 300,
            disable_scale_in: false,
        }
    }

    fn situation(running: u32) -> Situation {
        Situation {
            now: 10_000,
            capacity: Capacity { desired: running, running, settled: true },
            minimum: 1,
            maximum: 100,
            last_out: None,
            last_in: None,
        }
    }

    /// The last values; before them, zeros for the whole span.
    fn wish(policy: &TargetTracking, situation: &Situation, last: &[f64]) -> Wish {
        let mut values = vec![Some(0.0); 15];
        values.extend(last.iter().copied().map(Some));
        by_tracking(policy, situation, Measured { values: &values[last.len()..], for_out: 3, for_in: true })
    }

    #[test]
    fn out_at_once_and_in_proportion() {
        assert_eq!(wish(&policy(), &situation(4), &[25.0, 25.0, 25.0]), Wish::Out(10));
        assert_eq!(wish(&policy(), &situation(4), &[10.1, 10.1, 10.1]), Wish::Out(5));
        assert_eq!(wish(&policy(), &situation(4), &[25.0, 10.0, 25.0]), Wish::Stay, "not in every period");
        let bounded = Situation { maximum: 6, ..situation(4) };
        assert_eq!(wish(&policy(), &bounded, &[25.0; 3]), Wish::Out(6));
        assert_eq!(wish(&policy(), &Situation { maximum: 4, ..situation(4) }, &[25.0; 3]), Wish::Stay);
        let short = Measured { values: &[Some(25.0); 2], for_out: 3, for_in: false };
        assert_eq!(by_tracking(&policy(), &situation(4), short), Wish::Stay, "too few values");
    }

    #[test]
    fn while_it_cools_down_only_a_greater_need_counts() {
        let changed = Change { at: 9_900, from: 4, to: 10 };
        let cooling = Situation { last_out: Some(changed), ..situation(10) };
        assert_eq!(wish(&policy(), &cooling, &[25.0; 3]), Wish::Stay, "the same need as before");
        assert_eq!(wish(&policy(), &cooling, &[30.0; 3]), Wish::Out(12));
        let cooled = Situation { now: 10_200, ..cooling };
        assert_eq!(wish(&policy(), &cooled, &[25.0; 3]), Wish::Out(25));
    }

    #[test]
    fn in_slowly() {
        let steady = |value: f64| [value; 15];
        assert_eq!(wish(&policy(), &situation(4), &steady(2.0)), Wish::In(3));
        assert_eq!(wish(&policy(), &situation(40), &steady(2.0)), Wish::In(36));
        assert_eq!(wish(&policy(), &situation(40), &steady(8.9)), Wish::In(36), "never below what is needed");
        assert_eq!(wish(&policy(), &situation(4), &steady(9.0)), Wish::Stay);
        assert_eq!(wish(&policy(), &situation(1), &steady(0.0)), Wish::Stay, "the bound");
        let mut once_busy = steady(2.0);
        once_busy[3] = 9.5;
        assert_eq!(wish(&policy(), &situation(4), &once_busy), Wish::Stay, "not in every period");
        assert_eq!(wish(&policy(), &situation(2), &steady(8.0)), Wish::Stay, "one less would be too little");
    }

    #[test]
    fn in_waits_for_cool_downs_and_for_a_whole_span() {
        let changed = Some(Change { at: 9_800, from: 3, to: 4 });
        for cooling in [Situation { last_out: changed, ..situation(4) }, Situation { last_in: changed, ..situation(4) }]
        {
            assert_eq!(wish(&policy(), &cooling, &[0.0; 15]), Wish::Stay);
        }
        let young = Measured { values: &[None; 15], for_out: 3, for_in: false };
        assert_eq!(by_tracking(&policy(), &situation(4), young), Wish::Stay);
        let idle = Measured { values: &[None; 15], for_out: 3, for_in: true };
        assert_eq!(by_tracking(&policy(), &situation(4), idle), Wish::In(3), "no requests at all are no load");
    }

    #[test]
    fn a_policy_that_never_scales_in_has_no_say_about_it() {
        let never = TargetTracking { disable_scale_in: true, ..policy() };
        assert_eq!(wish(&never, &situation(4), &[0.0; 15]), Wish::Abstain);
        assert_eq!(wish(&never, &situation(4), &[25.0; 3]), Wish::Out(10));
    }
}
