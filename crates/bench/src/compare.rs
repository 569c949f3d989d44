//! Runs the same plan under several strategies and sets them side by side.

use std::fmt::Write as _;
use std::io::{self, Write};

use isotherm_report::{Report, StrategySummary, comparison, csv};
use isotherm_workload::{Plan, Prediction};

use crate::validity::{Counted, Lag, objections};
use crate::work::Work;
use crate::{Options, Progress, Run, RunError, Target, calibrate, run};

/// Supplies each strategy with instances whose caches are cold, or with text that they have not seen.
pub trait Fleet {
    type Error;

    /// Starts routing by this strategy (named in capitals) and says where requests go.
    ///
    /// # Errors
    /// When there will be nothing to send requests to.
    fn start(&mut self, strategy: &str) -> Result<Arm, Self::Error>;

    /// Ends what `start` began, and tells how late emulated engines were since then; `None` for real ones.
    ///
    /// # Errors
    /// When the next strategy could not be measured after this.
    fn stop(&mut self) -> Result<Option<Lag>, Self::Error>;

    /// What the engines have done since `start`; `None` where they do not say.
    fn work(&self) -> Option<Work> {
        None
    }
}

/// Where one strategy's requests go.
#[derive(Clone, Debug)]
pub struct Arm {
    pub target: Target,
    /// The names of the instances that serve, as the router gives them; empty where that is not known.
    pub instances: Vec<String>,
    /// How many accelerators they have in all, where that is known.
    pub accelerators: Option<u32>,
    /// Seeds the words of the prompts. Engines that keep their caches from one strategy, or from one run, to the next
    /// need a fresh one each time.
    pub text_seed: u64,
}

/// Runs the plan under each strategy in turn; the first one is the baseline.
///
/// # Errors
/// Those of the fleet, or when a target cannot be reached.
pub fn compare<F: Fleet>(
    fleet: &mut F,
    strategies: &[&str],
    plan: &Plan,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Comparison, CompareError<F::Error>> {
    let mut comparison = Comparison {
        report: Report {
            scenario: plan.name().to_owned(),
            baseline: strategies.first().copied().unwrap_or_default().to_owned(),
            strategies: Vec::new(),
            invalid: Vec::new(),
            speed: options.speed,
            seed: plan.seed(),
            users: plan.users(),
            instances: None,
        },
        runs: Vec::new(),
        prediction: None,
    };
    let mut options = options.clone();
    for strategy in strategies {
        let arm = fleet.start(strategy).map_err(CompareError::Fleet)?;
        let outcome = measure(&arm, strategy, plan, &mut options, progress);
        let engine_lag = fleet.stop().map_err(CompareError::Fleet)?;
        let instances = u32::try_from(arm.instances.len()).ok().filter(|count| *count > 0);
        comparison.add(strategy, outcome?, instances, engine_lag);
    }
    Ok(comparison)
}

/// Runs one strategy. The first one finds out how long tokens are, for all of them.
fn measure(
    arm: &Arm,
    strategy: &str,
    plan: &Plan,
    options: &mut Options,
    progress: &dyn Progress,
) -> Result<Run, RunError> {
    if options.characters_per_token.is_none() {
        options.characters_per_token = calibrate(&arm.target, arm.text_seed, options)?;
    }
    progress.started(strategy, options.warm_up + options.requests);
    let outcome = run(&arm.target, plan, arm.text_seed, options, progress);
    progress.finished();
    outcome
}

/// Why strategies could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError<E> {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("{0}")]
    Fleet(E),
}

/// Strategies side by side, with every request.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The figures; serialises as the JSON form of reports.
    pub report: Report,
    /// Each strategy's requests, in the order of the report.
    pub runs: Vec<Run>,
    prediction: Option<Prediction>,
}

impl Comparison {
    fn add(&mut self, strategy: &str, run: Run, instances: Option<u32>, engine_lag: Option<Lag>) {
        let prediction = instances.and_then(|instances| run.prediction(instances));
        let predicted = prediction.and_then(|prediction| predicted_for(strategy, &prediction));
        let summary = StrategySummary::of(strategy, &run.records, instances).with_predicted_hit_rate(predicted);
        let first_failure = run.records.iter().find_map(|record| record.failure.as_ref());
        let counted = Counted { strategy, requests: summary.requests, errors: summary.errors, first_failure };
        self.report.invalid.extend(objections(&counted, engine_lag, run.client_lag, self.report.speed));
        self.report.instances = instances;
        self.report.strategies.push(summary);
        self.prediction = prediction;
        self.runs.push(run);
    }

    /// The table, what counting predicts, and how the figures came about. Up to four strategies fit 100 columns.
    pub fn text(&self) -> String {
        let mut text = comparison::text(&self.report);
        if let (Some(prediction), Some(instances)) = (self.prediction, self.report.instances) {
            text.push('\n');
            text.push_str(&prediction_text(&prediction, instances));
        }
        text.push('\n');
        for (summary, run) in self.report.strategies.iter().zip(&self.runs) {
            let seconds = run.wall.as_secs_f64();
            let megabytes = run.request_bytes as f64 / 1e6 / seconds;
            // Writing into a String cannot fail.
            let _ = writeln!(
                text,
                "{}: {} requests in {seconds:.1} s of wall-clock time, {megabytes:.2} MB of prompts a second.",
                summary.strategy,
                run.records.len(),
            );
        }
        if self.report.speed != 1.0 {
            let _ = writeln!(text, "All figures are in the engines' time: {} x the wall clock.", self.report.speed);
        }
        text
    }

    /// Writes every request of every strategy, with one heading.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        csv::write_header(out)?;
        for (summary, run) in self.report.strategies.iter().zip(&self.runs) {
            csv::write_rows(out, &summary.strategy, &run.records)?;
        }
        out.flush()
    }
}

/// The predicted hit rate in tokens, for the strategies of which counting knows enough.
fn predicted_for(strategy: &str, prediction: &Prediction) -> Option<f64> {
    match strategy {
        "RANDOM" => Some(prediction.random.of_tokens),
        "PREFIX_AWARE" => Some(prediction.affinity.of_tokens),
        _ => None,
    }
}

fn prediction_text(prediction: &Prediction, instances: u32) -> String {
    let line = |name: &str, formula: &str, of_tokens: f64, of_requests: f64| {
        let (tokens, requests) = (100.0 * of_tokens, 100.0 * of_requests);
        format!("  {name:<9} {formula:<30} {tokens:>5.1}% of prompt tokens ({requests:.1}% of requests)\n")
    };
    let (affinity, random) = (prediction.affinity, prediction.random);
    format!(
        "By counting, with m uses of each beginning, n = {instances} instances and caches without limit:\n{}{}",
        line("affinity", "1 - 1/m", affinity.of_tokens, affinity.of_requests),
        line("random", "1 - n(1 - (1 - 1/n)^m)/m", random.of_tokens, random.of_requests),
    )
}

#[cfg(test)]
mod tests;
