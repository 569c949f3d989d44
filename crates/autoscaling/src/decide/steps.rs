//! Step scaling: an alarm goes off, and by how much decides the step.

use super::{Situation, Wish};
use crate::record::{Adjustment, Change, Step, Steps};

/// An alarm that calls a policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Called {
    /// By how much the metric exceeds the alarm's threshold; what is not known counts as 0.
    pub(crate) excess: f64,
}

/// What a policy wants when an alarm calls it.
pub(crate) fn by_steps(policy: &Steps, situation: &Situation, called: Called) -> Wish {
    let Some(step) = policy.steps.iter().find(|step| step.holds(called.excess)) else { return Wish::Stay };
    let desired = f64::from(situation.capacity.desired);
    let wanted = match policy.adjustment {
        Adjustment::To => f64::from(step.adjustment),
        Adjustment::By => desired + f64::from(step.adjustment),
        Adjustment::ByPercent => desired + percent(desired, step.adjustment, policy.least_change),
    };
    let wish = situation.towards(situation.bounded(wanted));
    let last = match wish {
        Wish::Out(_) => situation.last_out,
        _ => later(situation.last_in, situation.last_out),
    };
    if situation.cools_down(last, policy.cooldown) { Wish::Stay } else { wish }
}

/// A change in percent: beyond one towards zero, within one away from it, and at least the least change.
fn percent(desired: f64, adjustment: i32, least: Option<u32>) -> f64 {
    let exact = desired * f64::from(adjustment) / 100.0;
    let rounded = if exact.abs() > 1.0 { exact.trunc() } else { exact.abs().ceil().copysign(exact) };
    let least = least.map_or(0.0, f64::from);
    if rounded.abs() < least { least.copysign(f64::from(adjustment)) } else { rounded }
}

impl Step {
    /// Whether the excess lies in this step: the bound nearer to the threshold belongs to it.
    fn holds(&self, excess: f64) -> bool {
        let lower = self.lower.unwrap_or(f64::NEG_INFINITY);
        let upper = self.upper.unwrap_or(f64::INFINITY);
        if lower >= 0.0 { (lower..upper).contains(&excess) } else { lower < excess && excess <= upper }
    }
}

/// The later of two changes.
fn later(one: Option<Change>, other: Option<Change>) -> Option<Change> {
    one.into_iter().chain(other).max_by_key(|change| change.at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Capacity;

    fn situation(desired: u32) -> Situation {
        Situation {
            now: 10_000,
            capacity: Capacity { desired, running: desired, settled: true },
            minimum: 0,
            maximum: 20,
            last_out: None,
            last_in: None,
        }
    }

    fn steps(adjustment: Adjustment, steps: &[(Option<f64>, Option<f64>, i32)]) -> Steps {
        let step = |(lower, upper, adjustment): &(Option<f64>, Option<f64>, i32)| Step {
            lower: *lower,
            upper: *upper,
            adjustment: *adjustment,
        };
        Steps {
            adjustment,
            steps: steps.iter().map(step).collect(),
            least_change: None,
            cooldown: 300,
            aggregation: None,
        }
    }

    fn wish(policy: &Steps, desired: u32, excess: f64) -> Wish {
        by_steps(policy, &situation(desired), Called { excess })
    }

    #[test]
    fn from_zero_to_one_as_in_sagemakers_guide() {
        let policy = steps(Adjustment::By, &[(Some(0.0), None, 1)]);
        assert_eq!(wish(&policy, 0, 0.0), Wish::Out(1));
        let changed = Some(Change { at: 9_900, from: 0, to: 1 });
        let cooling = Situation { last_out: changed, ..situation(1) };
        assert_eq!(by_steps(&policy, &cooling, Called { excess: 0.0 }), Wish::Stay);
    }

    #[test]
    fn the_step_in_which_the_excess_lies_counts() {
        let policy =
            steps(Adjustment::By, &[(Some(0.0), Some(10.0), 1), (Some(10.0), None, 3), (None, Some(-5.0), -2)]);
        for (excess, expected) in
            [(0.0, Wish::Out(6)), (9.9, Wish::Out(6)), (10.0, Wish::Out(8)), (-5.0, Wish::In(3)), (-4.9, Wish::Stay)]
        {
            assert_eq!(wish(&policy, 5, excess), expected, "{excess}");
        }
    }

    #[test]
    fn percentages_round_as_the_guide_says() {
        let policy = |percent| steps(Adjustment::ByPercent, &[(None, None, percent)]);
        assert_eq!(wish(&policy(25), 10, 0.0), Wish::Out(12), "2.5 is 2");
        assert_eq!(wish(&policy(10), 4, 0.0), Wish::Out(5), "0.4 is 1");
        assert_eq!(wish(&policy(-10), 4, 0.0), Wish::In(3));
        assert_eq!(wish(&policy(100), 15, 0.0), Wish::Out(20), "the bound");
        let at_least = Steps { least_change: Some(2), ..policy(10) };
        assert_eq!(wish(&at_least, 4, 0.0), Wish::Out(6));
        assert_eq!(wish(&steps(Adjustment::To, &[(Some(0.0), None, 7)]), 4, 1.0), Wish::Out(7));
    }
}
