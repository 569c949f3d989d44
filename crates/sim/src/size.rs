//! Searches the smallest fleet that reaches a goal.

use std::fmt;
use std::str::FromStr;

use isotherm_report::study::summarise;
use serde::Serialize;

use crate::compare::run_all;
use crate::figure::Figure;
use crate::scenario::quantity::duration;
use crate::scenario::{InvalidScenario, Scenario};
use crate::simulation::Watch;
use crate::strategy::Rule;

/// The largest fleet that is tried.
const MOST_INSTANCES: u32 = 1_024;

/// The smallest fleet of one strategy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sized {
    /// The strategy.
    pub strategy: String,
    /// How many instances reach the goal; `None` if 1,024 do not.
    pub instances: Option<u32>,
    /// The goal's figure with so many.
    pub figure: Option<f64>,
    /// The same with one instance fewer, where the goal is missed.
    pub figure_with_one_fewer: Option<f64>,
}

/// Finds for each strategy of the scenario the smallest fleet that reaches the goal, with the same mixture of
/// instances and the same clients. It relies on more instances being no worse.
///
/// # Errors
/// When the workload cannot be planned or read.
pub fn size_for(
    scenario: &Scenario,
    goal: &Goal,
    jobs: usize,
    watch: &dyn Watch,
) -> Result<Vec<Sized>, InvalidScenario> {
    scenario.strategies.iter().map(|rule| smallest(scenario, rule, goal, jobs, watch)).collect()
}

fn smallest(
    scenario: &Scenario,
    rule: &Rule,
    goal: &Goal,
    jobs: usize,
    watch: &dyn Watch,
) -> Result<Sized, InvalidScenario> {
    let figure = |instances: u32| -> Result<Option<f64>, InvalidScenario> {
        let resized = Scenario { fleet: scenario.fleet.resized(instances), ..scenario.clone() };
        let runs = run_all(&resized, std::slice::from_ref(rule), jobs, watch)?;
        let digests = runs.into_iter().flatten().map(|(digest, _)| digest).collect();
        let summaries = summarise(&[(rule.to_string(), digests)]);
        Ok(summaries.first().and_then(|summary| goal.figure.of(&summary.measures)))
    };
    let mut missed = (0, None);
    let mut reached = None;
    let mut instances = scenario.fleet.instances();
    // Doubles upwards until the goal is reached, then halves the distance to the largest fleet that misses it.
    loop {
        let value = figure(instances)?;
        if value.is_some_and(|value| goal.is_reached(value)) {
            reached = Some((instances, value));
        } else {
            missed = (instances, value);
        }
        instances = match reached {
            Some((smallest, _)) if smallest - missed.0 <= 1 => break,
            Some((smallest, _)) => missed.0 + (smallest - missed.0) / 2,
            None if instances >= MOST_INSTANCES => break,
            None => (instances * 2).min(MOST_INSTANCES),
        };
    }
    let (instances, value) = reached.unzip();
    let figure_with_one_fewer = missed.1;
    Ok(Sized { strategy: rule.to_string(), instances, figure: value.flatten(), figure_with_one_fewer })
}

/// A bound on a figure: `ttft_p90<300ms`, `hit_rate>0.8`.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    figure: Figure,
    /// In milliseconds, as a share of 1, or per second.
    bound: f64,
}

impl Goal {
    fn is_reached(&self, value: f64) -> bool {
        self.figure.is_better(value, self.bound)
    }

    /// A value of the goal's figure with its unit.
    pub fn show(&self, value: f64) -> String {
        self.figure.show(value)
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.figure.less_is_better() { '<' } else { '>' };
        write!(formatter, "{} {sign} {}", self.figure, self.show(self.bound))
    }
}

impl FromStr for Goal {
    type Err = UnknownGoal;

    fn from_str(text: &str) -> Result<Goal, UnknownGoal> {
        let unknown = || UnknownGoal { given: text.to_owned() };
        let (name, bound) = text.split_once(['<', '>']).ok_or_else(unknown)?;
        let figure: Figure = name.trim().parse().map_err(|_| unknown())?;
        if figure.less_is_better() != text.contains('<') {
            return Err(unknown());
        }
        let bound = bound.trim();
        let bound = match figure {
            Figure::Ttft(_) => duration(bound).map(|bound| bound.as_secs_f64() * 1e3),
            Figure::HitRate | Figure::Goodput => bound.parse().ok().filter(|bound: &f64| bound.is_finite()),
        };
        Ok(Goal { figure, bound: bound.ok_or_else(unknown)? })
    }
}

/// A text that is no goal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is no goal; allowed: ttft_p50, ttft_p90, ttft_p95, ttft_p99 or ttft_mean < a duration such as 300ms; \
     hit_rate > a share such as 0.8; goodput > requests per second"
)]
pub struct UnknownGoal {
    given: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_read_and_told() {
        for (text, told) in [
            ("ttft_p90<300ms", "ttft_p90 < 300 ms"),
            ("ttft_p99 < 1.5s", "ttft_p99 < 1500 ms"),
            ("hit_rate>0.8", "hit_rate > 80.0 %"),
            ("goodput > 12", "goodput > 12.00/s"),
        ] {
            assert_eq!(text.parse::<Goal>().unwrap().to_string(), told);
        }
        for text in ["ttft_p90", "ttft_p90>300ms", "ttft_p90<300", "hit_rate<0.5", "luck>1", "goodput>nan"] {
            assert!(text.parse::<Goal>().is_err(), "{text}");
        }
    }
}
