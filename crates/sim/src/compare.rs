//! Runs a scenario under several rules with several seeds, on several threads, and sets the rules side by side.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use isotherm_report::measures::Latency;
use isotherm_report::study::{Digest, FleetNote, Objectives, summarise};
use isotherm_report::{Bound, Report, Study};

use crate::scenario::{InvalidScenario, Scenario};
use crate::simulation::{Watch, simulate};
use crate::strategy::Rule;

/// Simulates every strategy of the scenario with every seed, the same seeds for each.
///
/// Runs are spread over `jobs` threads (0 counts as 1); which thread does what has no influence on the outcome.
///
/// # Errors
/// When the workload cannot be planned or read.
pub fn compare(scenario: &Scenario, jobs: usize, watch: &dyn Watch) -> Result<Study, InvalidScenario> {
    let objectives = scenario.objectives();
    let runs = run_all(scenario, &scenario.strategies, jobs, watch)?;
    let bounds: Vec<Bound> = runs.first().into_iter().flatten().filter_map(|(_, bound)| *bound).collect();
    let names = scenario.strategies.iter().map(Rule::to_string);
    let digests = runs.into_iter().map(|runs| runs.into_iter().map(|(digest, _)| digest).collect());
    let strategies: Vec<(String, Vec<Digest>)> = names.zip(digests).collect();
    Ok(Study {
        report: Report {
            scenario: scenario.name.clone(),
            baseline: strategies.first().map(|(name, _)| name.clone()).unwrap_or_default(),
            strategies: summarise(&strategies),
            invalid: Vec::new(),
            speed: 1.0,
            seed: scenario.first_seed,
            users: scenario.users()?,
            instances: Some(scenario.fleet.instances()),
        },
        title: scenario.title.clone(),
        seeds: scenario.seeds,
        duration_seconds: scenario.duration.as_secs_f64(),
        warm_up_seconds: scenario.warm_up.as_secs_f64(),
        bound: mean_bound(&bounds),
        objectives,
        fitted: scenario.fitted.clone(),
        predicted: scenario.predicted.clone(),
        changes: notes(scenario),
    })
}

/// One run in short.
pub(crate) type Short = (Digest, Option<Bound>);

/// The runs of each rule, seed by seed.
pub(crate) fn run_all(
    scenario: &Scenario,
    rules: &[Rule],
    jobs: usize,
    watch: &dyn Watch,
) -> Result<Vec<Vec<Short>>, InvalidScenario> {
    let objectives = scenario.objectives();
    let seeds = scenario.seeds as usize;
    let count = rules.len() * seeds;
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Short, InvalidScenario>)>> = Mutex::new(Vec::with_capacity(count));
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, count.max(1)) {
            scope.spawn(|| {
                loop {
                    // Seed by seed, so that what is still to do at the end is equal work.
                    let place = next.fetch_add(1, Relaxed);
                    if place >= count {
                        break;
                    }
                    let (seed, rule) = (place / rules.len(), place % rules.len());
                    let outcome = simulate(scenario, &rules[rule], scenario.first_seed + seed as u64, watch);
                    let short = outcome.map(|outcome| (Digest::of(&outcome.run, &objectives), outcome.bound));
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((rule * seeds + seed, short));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(place, _)| *place);
    let shorts: Vec<Short> = done.into_iter().map(|(_, short)| short).collect::<Result<_, _>>()?;
    let mut shorts = shorts.into_iter();
    Ok(rules.iter().map(|_| shorts.by_ref().take(seeds).collect()).collect())
}

impl Scenario {
    /// What counts as a good answer and what an instance costs, as reports have it.
    pub fn objectives(&self) -> Objectives {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        Objectives {
            ttft_ms: self.slo.ttft.map(milliseconds),
            token_gap_ms: self.slo.token_gap.map(milliseconds),
            price_per_instance_hour: self.price_per_instance_hour,
        }
    }
}

fn mean_bound(bounds: &[Bound]) -> Option<Bound> {
    let mean = |of: &dyn Fn(&Bound) -> f64| bounds.iter().map(of).sum::<f64>() / bounds.len() as f64;
    (!bounds.is_empty()).then(|| Bound {
        hit_rate: mean(&|bound| bound.hit_rate),
        ttft_ms: Latency {
            p50: mean(&|bound| bound.ttft_ms.p50),
            p90: mean(&|bound| bound.ttft_ms.p90),
            p95: mean(&|bound| bound.ttft_ms.p95),
            p99: mean(&|bound| bound.ttft_ms.p99),
            mean: mean(&|bound| bound.ttft_ms.mean),
        },
    })
}

fn notes(scenario: &Scenario) -> Vec<FleetNote> {
    let note =
        |change: &crate::TimedChange| FleetNote { seconds: change.at.as_secs_f64(), what: change.change.to_string() };
    scenario.changes.iter().map(note).collect()
}
