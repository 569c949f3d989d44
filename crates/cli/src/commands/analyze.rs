//! `isotherm analyze`: what request logs tell of shared beginnings, and what to configure for them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use hyper::Method;
use indicatif::{ProgressBar, ProgressStyle};
use isotherm_analysis::{CacheSize, Format, Input, Options, Told, Wanted, analyse, page, text};
use isotherm_engine_model::Profile;
use isotherm_sim::Goal;
use isotherm_workload::users_for;

use crate::admin_client::{AdminClient, AdminFlags};
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::scenario_file;

/// Find out from request logs what prompts share, what breaks it, and what to configure
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  isotherm analyze traffic.jsonl                      bodies of requests, one a line, or wrapped with times
  isotherm analyze capture/*.jsonl.gz --instances 7   SageMaker data capture, compressed, for a fleet of seven
  isotherm analyze session.har --html report.html     with pictures
  zcat access.log.*.gz | isotherm analyze - --format access-log
  isotherm analyze trace.jsonl --goal 'ttft_p90<300ms' --json report.json
  isotherm analyze --router http://127.0.0.1:8081     the last requests of a running router, from their hashes

Reads in one pass and in bounded memory. Keeps hashes and counts, and no text unless --keep-text is given. The
recommendation comes from simulating the log's own requests on the routing code that serves.")]
pub(crate) struct Arguments {
    /// Logs, compressed with gzip or not; - reads standard input
    #[arg(required_unless_present = "router", value_name = "FILE")]
    logs: Vec<PathBuf>,

    /// Analyse the last requests of the router with this admin plane, which keeps their hashes where `diagnostics` are on
    #[arg(long, value_name = "URL", conflicts_with_all = ["logs", "format", "keep_text"])]
    router: Option<String>,

    /// File with the admin token of that router [default: where a router of the same user left it]
    #[arg(long, value_name = "FILE", requires = "router", env = "ISOTHERM_ADMIN_TOKEN_FILE")]
    token_file: Option<PathBuf>,

    /// Who has to have signed that admin plane's certificate, in PEM [default: this machine's authorities]
    #[arg(long, value_name = "FILE", requires = "router", env = "ISOTHERM_ADMIN_CA")]
    admin_ca: Option<PathBuf>,

    /// What all logs are: bodies, data-capture, har, mooncake, agents, access-log [default: found by looking]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// Show an example of the text at each place where prompts part; it may be anything that users wrote
    #[arg(long)]
    keep_text: bool,

    /// Write everything as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write tables and pictures as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// How many instances there are [default: 4, or as many as that router has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_INSTANCES)),
          help_heading = "For which fleet")]
    instances: Option<u32>,

    /// Model and accelerators of each [default: llama3.1-70b-tp8-bf16]
    #[arg(long, value_name = "NAME", help_heading = "For which fleet")]
    profile: Option<String>,

    /// What the fleet must reach, such as 'ttft_p90<300ms'; decides how many instances are recommended
    #[arg(long, value_name = "GOAL", help_heading = "For which fleet")]
    goal: Option<Goal>,

    /// How many users send what has no times [default: 46 for 7 instances]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "For which fleet")]
    users: Option<u32>,

    /// How many of the log's requests to simulate, from the first on; 0 for no recommendation
    #[arg(long, value_name = "N", default_value_t = 10_000, help_heading = "For which fleet")]
    simulate: usize,

    /// With how many seeds each setting is simulated [default: 2, up to 8 for short logs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "For which fleet")]
    seeds: Option<u32>,

    /// How many simulations run at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "For which fleet")]
    jobs: Option<u16>,
}

/// How many instances logs are analysed for, where nobody says.
const INSTANCES: u32 = 4;
const MOST_INSTANCES: u32 = 512;

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let profile = match &arguments.profile {
        Some(name) => Profile::named(name).map_err(|error| Failure::Usage(format!("--profile: {error}")))?,
        None => Profile::default(),
    };
    let router = arguments.router()?;
    let instances = arguments.instances(router.as_ref())?;
    let inputs = arguments.inputs(router.as_ref())?;
    if inputs.iter().filter(|input| **input == Input::Standard).count() > 1 {
        return Err(Failure::Usage("standard input (-) can be read only once".to_owned()));
    }
    let options =
        Options { format: arguments.format, keep_text: arguments.keep_text, most_simulated: arguments.simulate };
    let bar = Reading::new(&inputs);
    let analysis = analyse(&inputs, &options, &bar).map_err(|error| Failure::Usage(error.to_string()));
    bar.0.finish_and_clear();
    let mut analysis = analysis?;
    if let Some((_, client)) = &router {
        let kept = client.call(Method::GET, "/api/requests?limit=0", None)?;
        analysis.findings.are_of_a_router(kept["missed"].as_u64().unwrap_or_default());
    }
    let cache = CacheSize { tokens: profile.kv_capacity_tokens, instances };
    let recommendation = if arguments.simulate == 0 {
        None
    } else {
        let bar = Searching::new();
        let found = analysis.recommend(&arguments.wanted(profile, instances), &bar).map_err(scenario_file::failure);
        bar.0.finish_and_clear();
        found?
    };
    let told = Told { findings: analysis.findings, recommendation, cache };
    output::print(&text(&told))?;
    if let Some(path) = &arguments.json {
        output::write_json(path, &told)?;
    }
    if let Some(path) = &arguments.html {
        std::fs::write(path, page(&told)).map_err(|error| Failure::running(path.display(), error))?;
    }
    Ok(())
}

impl Arguments {
    /// The router that was asked for, and what it is called.
    fn router(&self) -> Result<Option<(&str, AdminClient)>, Failure> {
        let Some(router) = &self.router else { return Ok(None) };
        let flags = AdminFlags::new(router.clone(), self.token_file.clone(), self.admin_ca.clone());
        Ok(Some((router, AdminClient::new(&flags)?)))
    }

    fn instances(&self, router: Option<&(&str, AdminClient)>) -> Result<u32, Failure> {
        if let Some(instances) = self.instances {
            return Ok(instances);
        }
        let Some((_, client)) = router else { return Ok(INSTANCES) };
        let listed = client.call(Method::GET, "/api/instances", None)?;
        let count = listed["instances"].as_array().map_or(0, Vec::len);
        Ok((count as u32).clamp(1, MOST_INSTANCES))
    }

    /// The logs, or what the router keeps.
    fn inputs(&self, router: Option<&(&str, AdminClient)>) -> Result<Vec<Input>, Failure> {
        let Some((name, client)) = router else { return Ok(self.logs.iter().map(|path| Input::new(path)).collect()) };
        let log = client.get("/api/requests.jsonl")?;
        if log.is_empty() {
            return Err(Failure::Usage(format!("the router at {name} has answered no request yet")));
        }
        Ok(vec![Input::Text { name: (*name).to_owned(), log: log.as_ref().into() }])
    }

    fn wanted(&self, profile: Profile, instances: u32) -> Wanted {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Wanted {
            instances,
            profile: Arc::new(profile),
            users: self.users.unwrap_or_else(|| users_for(instances)),
            think: Duration::from_secs(2),
            goal: self.goal.clone(),
            seeds: self.seeds,
            jobs: self.jobs.map_or_else(cores, usize::from),
        }
    }
}

/// How much of the logs was read, on standard error when that is a terminal.
struct Reading(ProgressBar);

impl Reading {
    fn new(inputs: &[Input]) -> Reading {
        let length: Option<u64> = inputs.iter().map(Input::length).sum();
        let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
        let template = match length {
            Some(_) => "reading {bar:40} {percent}%, {binary_bytes_per_sec}, {eta} left",
            None => "{spinner} reading, {binary_bytes}, {binary_bytes_per_sec}",
        };
        Reading(styled(bar, template))
    }
}

impl isotherm_analysis::Watch for Reading {
    fn read(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}

/// That the search goes on, on standard error when that is a terminal.
struct Searching(ProgressBar);

impl Searching {
    fn new() -> Searching {
        Searching(styled(ProgressBar::no_length(), "{spinner} simulating, {elapsed}"))
    }
}

impl isotherm_sim::Watch for Searching {
    fn passed(&self, _nanoseconds: u64) {
        self.0.tick();
    }
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    // A template that does not parse would only cost the bar its looks.
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}
