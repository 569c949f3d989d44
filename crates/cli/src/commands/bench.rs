//! `isotherm bench`: the same requests under several strategies, over real HTTP, side by side.

mod emulated;
mod real;
mod routed;
mod scenario;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use isotherm_bench::{Bar, Comparison, Options, compare};
use isotherm_core::PrefixAware;
use isotherm_sim::Rule;
use isotherm_workload::{Documents, NoSharing, Plan, Workload};

use self::emulated::Emulated;
use self::real::Real;
use self::routed::Routed;
use crate::exit::{Failure, Outcome};
use crate::fleet_of_engines::EngineFlags;
use crate::output;

/// Measure what a routing strategy gains: the same requests under each, over real HTTP
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  isotherm bench                                          7 emulated engines, RANDOM against PREFIX_AWARE
  isotherm bench --workload no-sharing                    what prefix routing costs where nothing is shared
  isotherm bench --strategies random,round-robin,least-outstanding-requests,prefix-aware
  isotherm bench --scenario aws-long --duration 300       what `isotherm simulate` predicts, measured over HTTP
  isotherm bench --instance http://10.0.0.1:8000 --instance http://10.0.0.2:8000 --users 8

With --instance, a router of its own is started before these engines for each strategy, and each strategy asks about
other documents, so that none finds the cache warm from the one before. Exit code 3: measured, but not to be trusted,
and why.")]
pub(crate) struct Arguments {
    /// Fleet, workload and strategies of `isotherm simulate`: the name of a scenario, or a YAML file
    #[arg(long, value_name = "NAME|FILE", help_heading = "Scenario", conflicts_with_all = [
        "workload", "requests", "warm_up", "users", "think", "document_tokens", "output_tokens", "seed", "requests_csv",
        "profile",
    ])]
    scenario: Option<String>,

    /// How often each strategy is run, in turn with the others; each time with another seed [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Scenario",
          requires = "scenario")]
    repeats: Option<u32>,

    /// Until when requests are sent in each run, in seconds of the engines' time [default: the scenario's]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Scenario",
          requires = "scenario")]
    duration: Option<u32>,

    /// So many times the scenario's load: more users, or more arrivals a second
    #[arg(long, value_name = "FACTOR", help_heading = "Scenario", requires = "scenario")]
    load: Option<f64>,

    /// What an instance costs an hour, in any currency
    #[arg(long, value_name = "PRICE", help_heading = "Scenario", requires = "scenario")]
    price: Option<f64>,

    /// What the clients send
    #[arg(long, value_enum, default_value_t = WorkloadName::Documents, help_heading = "Workload")]
    workload: WorkloadName,

    /// How many requests are measured under each strategy, after the warm-up [default: 700]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Workload")]
    requests: Option<u64>,

    /// How many requests go before those that are measured [default: 3 for each user]
    #[arg(long, value_name = "N", help_heading = "Workload")]
    warm_up: Option<u64>,

    /// How many users ask, each waiting for its answer [default: by the number of instances]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Workload")]
    users: Option<u32>,

    /// Mean time that a user thinks between an answer and the next question, in seconds [default: 2]
    #[arg(long, value_name = "SECONDS", help_heading = "Workload")]
    think: Option<f64>,

    /// Length of a document in tokens [default: 8000]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Workload")]
    document_tokens: Option<u32>,

    /// Length of an answer in tokens [default: 100 to 160]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Workload")]
    output_tokens: Option<u32>,

    /// Seed of everything random in the workload
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Workload")]
    seed: u64,

    /// Strategies to compare, the first one the baseline [default: random,prefix-aware, or the scenario's]
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', help_heading = "Routing")]
    strategies: Vec<Rule>,

    /// How many characters of a prompt decide its home, 1 to 65536 [default: 4096]
    #[arg(long, value_name = "N", help_heading = "Routing")]
    prefix_length: Option<String>,

    /// How many requests in flight make an instance full for its prefixes, 1 to 1024 [default: 10]
    #[arg(long, value_name = "N", help_heading = "Routing")]
    concurrency_threshold: Option<String>,

    /// A running engine, as [ID=]http://HOST:PORT; repeat for each [default: emulated engines]
    #[arg(long = "instance", value_name = "URL", help_heading = "Engines", conflicts_with_all = ["engines", "profile", "speed"])]
    instances: Vec<String>,

    /// How many emulated engines [default: 7, or the scenario's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000),
          help_heading = "Engines")]
    engines: Option<u16>,

    #[command(flatten)]
    engine: EngineFlags,

    /// Write the figures as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,

    /// Write tables and pictures as one HTML page
    #[arg(long, value_name = "FILE", help_heading = "Output", requires = "scenario")]
    html: Option<PathBuf>,

    /// Write one row for each request as CSV
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    requests_csv: Option<PathBuf>,
}

/// The workloads that need no file.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum WorkloadName {
    /// Long shared beginnings: documents, each asked 5 or 6 questions one after the other
    Documents,
    /// Prompts that share nothing from the first character
    NoSharing,
}

/// What is compared when neither a flag nor a scenario says.
const STRATEGIES: [&str; 2] = ["RANDOM", "PREFIX_AWARE"];
/// How many engines are emulated when neither a flag nor a scenario says.
const ENGINES: u16 = 7;

pub(crate) fn run(arguments: Arguments) -> Outcome {
    if let Some(name) = &arguments.scenario {
        return scenario::run(&arguments, name);
    }
    let engines = arguments.engines.unwrap_or(ENGINES);
    let count = match arguments.instances.len() {
        0 => engines.into(),
        given => given as u32,
    };
    let plan = Plan::new(arguments.plan(count)?, arguments.seed).map_err(|error| Failure::Usage(error.to_string()))?;
    let options = arguments.options(&plan)?;
    let given: Vec<String> = arguments.strategies.iter().map(Rule::to_string).collect();
    arguments.strategies.iter().try_for_each(|rule| routed::served(rule, PrefixAware::default()).map(drop))?;
    let mut strategies: Vec<&str> = given.iter().map(String::as_str).collect();
    if strategies.is_empty() {
        strategies.extend(STRATEGIES);
    }
    let routed = Routed::by_flags(arguments.prefix_length.clone(), arguments.concurrency_threshold.clone());
    let progress = Bar::new();
    let comparison = if arguments.instances.is_empty() {
        let engine = arguments.engine_flags(options.speed);
        let profiles = vec![engine.config()?.profile; engines.into()];
        let mut fleet = Emulated::new(engine, profiles, routed)?;
        compare(&mut fleet, &strategies, &plan, &options, &progress).map_err(failure)?
    } else {
        let mut fleet = Real::new(arguments.instances.clone(), routed, arguments.seed)?;
        compare(&mut fleet, &strategies, &plan, &options, &progress).map_err(failure)?
    };
    arguments.tell(&comparison)
}

fn failure(error: isotherm_bench::CompareError<Failure>) -> Failure {
    match error {
        isotherm_bench::CompareError::Fleet(failure) => failure,
        isotherm_bench::CompareError::Run(error) => Failure::Running(error.to_string()),
    }
}

impl Arguments {
    fn plan(&self, instances: u32) -> Result<Workload, Failure> {
        let think = self.think.map(std::time::Duration::try_from_secs_f64).transpose();
        let think = think.map_err(|error| Failure::Usage(format!("--think: {error}")))?;
        Ok(match self.workload {
            WorkloadName::Documents => {
                let default = Documents::for_instances(instances);
                Workload::from(Documents {
                    users: self.users.unwrap_or(default.users),
                    think: think.unwrap_or(default.think),
                    document_tokens: self.document_tokens.unwrap_or(default.document_tokens),
                    output_tokens: self.output_tokens.map_or(default.output_tokens.clone(), |n| n..=n),
                    ..default
                })
            }
            WorkloadName::NoSharing => {
                if self.document_tokens.is_some() {
                    let text = "--document-tokens: the workload no-sharing has no documents";
                    return Err(Failure::Usage(text.to_owned()));
                }
                let default = NoSharing::for_instances(instances);
                Workload::from(NoSharing {
                    users: self.users.unwrap_or(default.users),
                    think: think.unwrap_or(default.think),
                    output_tokens: self.output_tokens.map_or(default.output_tokens.clone(), |n| n..=n),
                    ..default
                })
            }
        })
    }

    fn options(&self, plan: &Plan) -> Result<Options, Failure> {
        let default = Options::for_users(plan.users());
        let emulated_speed = self.engine.speed.unwrap_or(default.speed);
        Ok(Options {
            requests: self.requests.unwrap_or(default.requests),
            warm_up: self.warm_up.unwrap_or(default.warm_up),
            speed: if self.instances.is_empty() { emulated_speed } else { 1.0 },
            ..default
        })
    }

    fn tell(&self, comparison: &Comparison) -> Outcome {
        output::print(&comparison.text())?;
        if let Some(path) = &self.json {
            output::write_json(path, &comparison.report)?;
        }
        if let Some(path) = &self.requests_csv {
            write_csv(path, comparison)?;
        }
        settle(&comparison.report.invalid)
    }

    /// What emulated engines pretend to be at this speed.
    fn engine_flags(&self, speed: f64) -> EngineFlags {
        EngineFlags { speed: Some(speed), ..self.engine.clone() }
    }
}

/// Fails when there are reasons to distrust the figures.
fn settle(objections: &[String]) -> Outcome {
    match objections {
        [] => Ok(()),
        objections => Err(Failure::Invalid(format!("the run is not valid:\n  {}", objections.join("\n  ")))),
    }
}

fn write_csv(path: &Path, comparison: &Comparison) -> Outcome {
    let file = File::create(path).map_err(|error| Failure::running(path.display(), error))?;
    comparison.write_csv(&mut BufWriter::new(file)).map_err(|error| Failure::running(path.display(), error))
}
