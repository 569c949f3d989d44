//! `isotherm bench --scenario`: what `simulate` predicts, measured over HTTP in the same form.

use isotherm_bench::{Bar, Options, Repeated, Repeats, Timetable, repeat};
use isotherm_core::{ConcurrencyThreshold, PrefixLength};
use isotherm_engine_model::Profile;
use isotherm_report::study::{Digest, html, summarise, text};
use isotherm_report::{Report, Study};
use isotherm_sim::{Rule, Scenario};
use isotherm_workload::Plan;

use super::emulated::Emulated;
use super::real::Real;
use super::routed::{Routed, served};
use super::{Arguments, failure, settle};
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::scenario_file;

/// Measures a scenario and tells the outcome.
pub(super) fn run(arguments: &Arguments, name: &str) -> Outcome {
    let scenario = arguments.scenario(name)?;
    let invalid = |error| scenario_file::failure(error);
    let plans: Vec<Plan> = (scenario.first_seed..)
        .take(scenario.seeds as usize)
        .map(|seed| scenario.plan(seed))
        .collect::<Result<_, _>>()
        .map_err(|error| invalid(error.into()))?;
    let users = scenario.users().map_err(|error| invalid(error.into()))?;
    let strategies: Vec<String> = scenario.strategies.iter().map(Rule::to_string).collect();
    let default = Options::for_users(users);
    let emulated = arguments.instances.is_empty();
    let speed = if emulated { arguments.engine.speed.unwrap_or(default.speed) } else { 1.0 };
    let options = Options { speed, ..default };
    let timetable = Timetable { warm_up: scenario.warm_up, duration: scenario.duration };
    let repeats = Repeats { strategies: &strategies, plans: &plans, timetable };
    announce(&scenario, speed);

    let routed = Routed::by_scenario(scenario.prefix_aware);
    let repeated = if emulated {
        let mut fleet = Emulated::new(arguments.engine_flags(speed), profiles(&scenario), routed)?;
        repeat(&mut fleet, &repeats, &options, &Bar::new()).map_err(failure)?
    } else {
        let mut fleet = Real::new(arguments.instances.clone(), routed, 0)?;
        repeat(&mut fleet, &repeats, &options, &Bar::new()).map_err(failure)?
    };
    if let Some(first) = &repeated.first_failure {
        eprintln!("the first request that failed: {}: {}", first.kind, first.detail);
    }
    let instances = if emulated { scenario.fleet.instances() } else { arguments.instances.len() as u32 };
    arguments.tell_study(&study(&scenario, strategies, repeated, instances, users, speed))
}

/// What each instance runs.
fn profiles(scenario: &Scenario) -> Vec<Profile> {
    let groups = scenario.fleet.groups.iter();
    groups.flat_map(|group| vec![Profile::clone(&group.profile); group.instances as usize]).collect()
}

/// A measurement takes its time: says how long before it begins.
fn announce(scenario: &Scenario, speed: f64) {
    let runs = scenario.strategies.len() as u32 * scenario.seeds;
    let minutes = scenario.duration.as_secs_f64() / speed / 60.0;
    eprintln!(
        "{runs} runs of {minutes:.1} min each on the wall clock, {:.0} min in all; --duration makes them shorter",
        (f64::from(runs) * minutes).ceil()
    );
}

/// The figures in the form that `simulate` gives.
fn study(
    scenario: &Scenario,
    strategies: Vec<String>,
    repeated: Repeated,
    instances: u32,
    users: u32,
    speed: f64,
) -> Study {
    let objectives = scenario.objectives();
    let digests = repeated.runs.iter().map(|runs| runs.iter().map(|run| Digest::of(run, &objectives)).collect());
    let strategies: Vec<(String, Vec<Digest>)> = strategies.into_iter().zip(digests).collect();
    Study {
        report: Report {
            scenario: scenario.name.clone(),
            baseline: strategies.first().map(|(name, _)| name.clone()).unwrap_or_default(),
            strategies: summarise(&strategies),
            invalid: repeated.invalid,
            speed,
            seed: scenario.first_seed,
            users,
            instances: Some(instances),
        },
        title: scenario.title.clone(),
        seeds: scenario.seeds,
        duration_seconds: scenario.duration.as_secs_f64(),
        warm_up_seconds: scenario.warm_up.as_secs_f64(),
        bound: None,
        objectives,
        fitted: scenario.fitted.clone(),
        predicted: Vec::new(),
        changes: Vec::new(),
    }
}

impl Arguments {
    /// The scenario as flags change it, if it can be measured.
    fn scenario(&self, name: &str) -> Result<Scenario, Failure> {
        let usage = |flag: &str, error: &dyn std::fmt::Display| Failure::Usage(format!("{flag}: {error}"));
        let mut scenario = scenario_file::read(name)?;
        if let Some(change) = scenario.changes.first() {
            let text = format!(
                "--scenario {name}: fleets that change ({}) can be simulated, not measured; measure it without `changes`",
                change.change
            );
            return Err(Failure::Usage(text));
        }
        if !self.strategies.is_empty() {
            scenario.strategies.clone_from(&self.strategies);
        }
        scenario.strategies.iter().try_for_each(|rule| served(rule, scenario.prefix_aware).map(drop))?;
        scenario.seeds = self.repeats.unwrap_or(1);
        if let Some(engines) = self.engines {
            scenario.fleet = scenario.fleet.resized(engines.into());
        }
        if let Some(factor) = self.load {
            if !(factor.is_finite() && factor > 0.0) {
                return Err(usage("--load", &format!("{factor} is no load; it must be a number above 0")));
            }
            scenario = scenario.with_load(factor);
        }
        if let Some(seconds) = self.duration {
            scenario.duration = std::time::Duration::from_secs(seconds.into());
        }
        if let Some(length) = &self.prefix_length {
            let length = length.parse().map_err(|error| usage("--prefix-length", &error))?;
            scenario.prefix_aware.prefix_length =
                PrefixLength::new(length).map_err(|error| usage("--prefix-length", &error))?;
        }
        if let Some(threshold) = &self.concurrency_threshold {
            let threshold = threshold.parse().map_err(|error| usage("--concurrency-threshold", &error))?;
            scenario.prefix_aware.concurrency_threshold =
                ConcurrencyThreshold::new(threshold).map_err(|error| usage("--concurrency-threshold", &error))?;
        }
        scenario.price_per_instance_hour = self.price.or(scenario.price_per_instance_hour);
        scenario.check().map_err(scenario_file::failure)?;
        Ok(scenario)
    }

    fn tell_study(&self, study: &Study) -> Outcome {
        let speed = study.report.speed;
        let how = if self.instances.is_empty() { "emulated engines" } else { "running engines" };
        let pace = if speed == 1.0 { String::new() } else { format!(", {speed} x as fast as the wall clock") };
        output::print(&format!("{}Measured over HTTP on {how}{pace}.\n", text(study)))?;
        if let Some(path) = &self.json {
            output::write_json(path, study)?;
        }
        if let Some(path) = &self.html {
            std::fs::write(path, html::page(study)).map_err(|error| Failure::running(path.display(), error))?;
        }
        settle(&study.report.invalid)
    }
}
