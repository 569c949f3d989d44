//! `isotherm simulate`: what each strategy would do to a fleet and its traffic, in virtual time.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use indicatif::{ProgressBar, ProgressStyle};
use isotherm_core::{ConcurrencyThreshold, PrefixLength};
use isotherm_report::study::{html, text};
use isotherm_report::{Align, Table};
use isotherm_sim::{Figure, Goal, Rule, Scenario, Sized, Tuned, Watch, compare, shipped, size_for, tune};

use crate::exit::{Failure, Outcome};
use crate::output;
use crate::scenario_file;

/// Predict what strategies would do to a fleet and its traffic, without touching either
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["scenario", "list"]), after_help = "\
Examples:
  isotherm simulate --list
  isotherm simulate --scenario aws-long
  isotherm simulate --scenario hot-prefix --strategies random,prefix-aware@1024/10,prefix-aware@1024/64 --seeds 20
  isotherm simulate --scenario my.yaml --json out.json --html out.html
  isotherm simulate --scenario aws-long --size-for 'ttft_p90<300ms'
  isotherm simulate --scenario multi-tenant --tune ttft_mean --seeds 2

It runs the routing code that serves on a model of the engines; the same seed gives the same figures everywhere.")]
pub(crate) struct Arguments {
    /// Which scenario: the name of one that comes with the program, or a YAML file
    #[arg(long, value_name = "NAME|FILE")]
    scenario: Option<String>,

    /// List the scenarios and the strategies that come with the program
    #[arg(long)]
    list: bool,

    /// Strategies to compare, the first one the baseline [default: the scenario's]
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', help_heading = "Instead of what the scenario says")]
    strategies: Vec<Rule>,

    /// The strategy that changes refer to [default: the first]
    #[arg(long, value_name = "STRATEGY", help_heading = "Instead of what the scenario says")]
    baseline: Option<Rule>,

    /// How many seeds, the same ones for each strategy
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
          help_heading = "Instead of what the scenario says")]
    seeds: Option<u32>,

    /// The first of the seeds, so that a comparison can be repeated with fresh ones [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1 << 32),
          help_heading = "Instead of what the scenario says")]
    first_seed: Option<u64>,

    /// How many instances, in the same mixture
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
          help_heading = "Instead of what the scenario says")]
    instances: Option<u32>,

    /// How many routers share the traffic at random, without telling each other anything
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
          help_heading = "Instead of what the scenario says")]
    routers: Option<u32>,

    /// So many times the load: more users, or more arrivals a second
    #[arg(long, value_name = "FACTOR", help_heading = "Instead of what the scenario says")]
    load: Option<f64>,

    /// Until when requests are sent, in simulated seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..),
          help_heading = "Instead of what the scenario says")]
    duration: Option<u32>,

    /// How many characters of a prompt decide its home, 1 to 65536
    #[arg(long, value_name = "N", help_heading = "Instead of what the scenario says")]
    prefix_length: Option<u64>,

    /// How many requests in flight make an instance full for its prefixes, 1 to 1024
    #[arg(long, value_name = "N", help_heading = "Instead of what the scenario says")]
    concurrency_threshold: Option<u64>,

    /// What an instance costs an hour, in any currency
    #[arg(long, value_name = "PRICE", help_heading = "Instead of what the scenario says")]
    price: Option<f64>,

    /// Search the smallest fleet that reaches a goal, such as 'ttft_p90<300ms' or 'hit_rate>0.8'
    #[arg(long, value_name = "GOAL")]
    size_for: Option<Goal>,

    /// Search the PrefixLength and the threshold with which PREFIX_AWARE does best in a figure, such as ttft_mean
    #[arg(long, value_name = "FIGURE", conflicts_with_all = ["size_for", "html"])]
    tune: Option<Figure>,

    /// How many simulations run at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write tables and pictures as one HTML page
    #[arg(long, value_name = "FILE", conflicts_with = "size_for")]
    html: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let Some(name) = &arguments.scenario else { return list() };
    let scenario = arguments.overridden(scenario_file::read(name)?)?;
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.map_or_else(cores, usize::from);
    if let Some(goal) = &arguments.size_for {
        let bar = Bar::new(None);
        let sized = size_for(&scenario, goal, jobs, &bar).map_err(scenario_file::failure)?;
        bar.finish();
        output::print(&sizes(goal, &scenario, &sized))?;
        return arguments.json.as_deref().map_or(Ok(()), |path| output::write_json(path, &sized));
    }
    if let Some(figure) = arguments.tune {
        let bar = Bar::new(None);
        let tuned = tune(&scenario, figure, jobs, &bar).map_err(scenario_file::failure)?;
        bar.finish();
        output::print(&best(figure, &tuned))?;
        return arguments.json.as_deref().map_or(Ok(()), |path| output::write_json(path, &tuned));
    }
    let runs = u64::from(scenario.seeds) * scenario.strategies.len() as u64;
    let bar = Bar::new(Some(scenario.duration.as_secs() * runs));
    let study = compare(&scenario, jobs, &bar).map_err(scenario_file::failure)?;
    bar.finish();
    output::print(&text(&study))?;
    if let Some(path) = &arguments.json {
        output::write_json(path, &study)?;
    }
    if let Some(path) = &arguments.html {
        std::fs::write(path, html::page(&study)).map_err(|error| Failure::running(path.display(), error))?;
    }
    Ok(())
}

impl Arguments {
    fn overridden(&self, mut scenario: Scenario) -> Result<Scenario, Failure> {
        let usage = |flag: &str, error: &dyn std::fmt::Display| Failure::Usage(format!("{flag}: {error}"));
        if !self.strategies.is_empty() {
            scenario.strategies.clone_from(&self.strategies);
        }
        if let Some(baseline) = &self.baseline {
            scenario.strategies.retain(|rule| rule != baseline);
            scenario.strategies.insert(0, baseline.clone());
        }
        scenario.seeds = self.seeds.unwrap_or(scenario.seeds);
        scenario.first_seed = self.first_seed.unwrap_or(scenario.first_seed);
        if let Some(instances) = self.instances {
            scenario.fleet = scenario.fleet.resized(instances);
        }
        scenario.routers = self.routers.unwrap_or(scenario.routers);
        if let Some(factor) = self.load {
            if !(factor.is_finite() && factor > 0.0) {
                return Err(usage("--load", &format!("{factor} is no load; it must be a number above 0")));
            }
            scenario = scenario.with_load(factor);
        }
        if let Some(seconds) = self.duration {
            scenario.duration = std::time::Duration::from_secs(seconds.into());
        }
        if let Some(length) = self.prefix_length {
            let length = PrefixLength::new(length).map_err(|error| usage("--prefix-length", &error))?;
            scenario.prefix_aware.prefix_length = length;
        }
        if let Some(threshold) = self.concurrency_threshold {
            let threshold =
                ConcurrencyThreshold::new(threshold).map_err(|error| usage("--concurrency-threshold", &error))?;
            scenario.prefix_aware.concurrency_threshold = threshold;
        }
        scenario.price_per_instance_hour = self.price.or(scenario.price_per_instance_hour);
        scenario.check().map_err(scenario_file::failure)?;
        Ok(scenario)
    }
}

fn list() -> Outcome {
    let mut table = Table::new([Align::Left, Align::Left]);
    table.row(["SCENARIO", ""]);
    for shipped in shipped() {
        table.row([shipped.name.to_owned(), shipped.scenario().map_err(scenario_file::failure)?.title]);
    }
    let rules: Vec<String> = Rule::all().map(|rule| rule.to_string()).collect();
    output::print(&format!("{table}\nStrategies: {}\n", rules.join(", ")))
}

fn sizes(goal: &Goal, scenario: &Scenario, sized: &[Sized]) -> String {
    let mut table = Table::new([Align::Left, Align::Right, Align::Right, Align::Right]);
    table.row([format!("for {goal}"), "instances".to_owned(), "figure".to_owned(), "with one fewer".to_owned()]);
    for sized in sized {
        let show = |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), |figure| goal.show(figure));
        let instances = sized.instances.map_or_else(|| "not reached".to_owned(), |count| count.to_string());
        table.row([sized.strategy.clone(), instances, show(sized.figure), show(sized.figure_with_one_fewer)]);
    }
    format!(
        "{table}\n{}: {}. Clients as in the scenario; {} seeds for each size.\n",
        scenario.name, scenario.title, scenario.seeds
    )
}

/// The best of the parameters that were tried.
fn best(figure: Figure, tuned: &[Tuned]) -> String {
    let mut table = Table::new([Align::Left, Align::Right]);
    table.row(["best of them", &figure.to_string()]);
    for tuned in tuned.iter().take(10) {
        let shown = tuned.figure.map_or_else(|| "-".to_owned(), |value| figure.show(value));
        table.row([tuned.strategy.clone(), shown]);
    }
    format!("{table}\n{} settings tried.\n", tuned.len())
}

/// How much simulated time has passed, on standard error when that is a terminal.
struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// `seconds` of simulated time are to pass in all, where that is known.
    fn new(seconds: Option<u64>) -> Bar {
        let bar = seconds.map_or_else(ProgressBar::no_length, |seconds| ProgressBar::new(seconds * 1_000));
        let template =
            if seconds.is_some() { "{bar:40} {percent}%, {eta} left" } else { "{spinner} searching, {elapsed}" };
        // A template that does not parse would only cost the bar its looks.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Bar { bar }
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Bar {
    fn passed(&self, nanoseconds: u64) {
        self.bar.inc(nanoseconds / 1_000_000);
    }
}
