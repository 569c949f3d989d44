//! Searches the parameters with which `PREFIX_AWARE` does best on a scenario.

use isotherm_core::{ConcurrencyThreshold, PrefixLength};
use isotherm_report::study::summarise;
use serde::Serialize;

use crate::compare::run_all;
use crate::figure::Figure;
use crate::scenario::{InvalidScenario, Scenario};
use crate::simulation::Watch;
use crate::strategy::Rule;

/// What is tried first: every length with every threshold.
const LENGTHS: [u64; 9] = [256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536];
const THRESHOLDS: [u64; 7] = [3, 6, 12, 24, 48, 96, 1_024];
/// Then the neighbourhood of the best, by these factors.
const NEIGHBOURS: [f64; 5] = [0.66, 0.8, 1.0, 1.25, 1.5];

/// Parameters and what they gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tuned {
    /// The strategy with its parameters, as `--strategies` takes it.
    pub strategy: String,
    /// The figure that was looked at; `None` where it is unknown.
    pub figure: Option<f64>,
}

/// Tries parameters of `PREFIX_AWARE` on a scenario, first far apart, then around the best; returns all, the best first.
///
/// # Errors
/// When the workload cannot be planned or read.
pub fn tune(
    scenario: &Scenario,
    figure: Figure,
    jobs: usize,
    watch: &dyn Watch,
) -> Result<Vec<Tuned>, InvalidScenario> {
    let mut tried: Vec<(Rule, Option<f64>)> = Vec::new();
    let all = LENGTHS.iter().flat_map(|&length| THRESHOLDS.map(|threshold| (length, threshold)));
    try_all(scenario, figure, all.collect(), &mut tried, jobs, watch)?;
    if let Some((length, threshold)) = tried.first().and_then(|(rule, _)| rule.parameters()) {
        let near = |value: u32| NEIGHBOURS.map(|factor| (f64::from(value) * factor).round() as u64);
        let thresholds = near(threshold.get());
        let around = near(length.get()).into_iter().flat_map(|length| thresholds.map(|threshold| (length, threshold)));
        try_all(scenario, figure, around.collect(), &mut tried, jobs, watch)?;
    }
    Ok(tried.into_iter().map(|(rule, figure)| Tuned { strategy: rule.to_string(), figure }).collect())
}

/// Adds what these parameters give, and sorts, the best first.
fn try_all(
    scenario: &Scenario,
    figure: Figure,
    parameters: Vec<(u64, u64)>,
    tried: &mut Vec<(Rule, Option<f64>)>,
    jobs: usize,
    watch: &dyn Watch,
) -> Result<(), InvalidScenario> {
    let rule = |(length, threshold): (u64, u64)| {
        Some(Rule::prefix_aware(PrefixLength::new(length).ok()?, ConcurrencyThreshold::new(threshold).ok()?))
    };
    let mut rules: Vec<Rule> = parameters.into_iter().filter_map(rule).collect();
    rules.retain(|rule| !tried.iter().any(|(tried, _)| tried == rule));
    rules.dedup();
    let runs = run_all(scenario, &rules, jobs, watch)?;
    for (rule, runs) in rules.into_iter().zip(runs) {
        let digests = runs.into_iter().map(|(digest, _)| digest).collect();
        let summaries = summarise(&[(rule.to_string(), digests)]);
        let value = summaries.first().and_then(|summary| figure.of(&summary.measures));
        tried.push((rule, value));
    }
    let rank = |value: &Option<f64>| match value {
        Some(value) if figure.less_is_better() => *value,
        Some(value) => -value,
        None => f64::MAX,
    };
    tried.sort_by(|left, right| rank(&left.1).total_cmp(&rank(&right.1)));
    Ok(())
}
