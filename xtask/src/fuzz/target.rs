//! One target: how it is built, run and watched, and what came out.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::log::Said;
use crate::failure::Failure;
use crate::machine;

/// An input that takes longer is a finding. Bytes of a few kilobytes take microseconds; the rest is for a busy machine.
const LONGEST_INPUT: &str = "-timeout=20";
/// An input that takes longer is told as a slow one, which is a finding too.
const SLOW_INPUT: &str = "-report_slow_units=5";
const MOST_MEMORY: &str = "-rss_limit_mb=2048";
/// How often a run says how far it is.
const EVERY: Duration = Duration::from_secs(30);

/// All targets, built.
#[derive(Debug)]
pub(crate) struct Built(PathBuf);

/// A target that ran.
#[derive(Debug)]
pub(crate) struct Ended {
    name: String,
    said: Said,
    took: Duration,
    status: ExitStatus,
    /// Files with the inputs that broke something.
    found: Vec<PathBuf>,
}

impl Built {
    pub(crate) fn build() -> Result<Built, Failure> {
        let mut build = machine::cargo();
        // The stable compiler lets nobody use its sanitizers and its coverage otherwise.
        build.args(["fuzz", "build"]).env("RUSTC_BOOTSTRAP", "1");
        eprintln!("$ cargo fuzz build");
        let built = build.status().map_err(|error| Failure::Failed(format!("cargo fuzz did not start: {error}")))?;
        if !built.success() {
            return Err(Failure::Failed(format!("`cargo fuzz build`: {built}")));
        }
        let version = machine::output(Command::new("rustc").arg("-vV"))?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.ok_or_else(|| Failure::Failed("`rustc -vV` names no host".to_owned()))?;
        Ok(Built(folder("target").join(host).join("release")))
    }

    /// Runs a target to its end, as long as it is to run or until it finds something.
    pub(crate) fn run(&self, name: &str, long: Duration) -> Result<Ended, Failure> {
        let (found, artifacts, logs) =
            (folder("target/found").join(name), folder("artifacts").join(name), folder("target/log"));
        for folder in [&found, &artifacts, &logs] {
            std::fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
        }
        let log = logs.join(name);
        let before = files(&artifacts)?;
        let started = Instant::now();
        let output = File::create(&log).map_err(|error| Failure::file(&log, &error))?;
        let mut target = machine::command(self.0.join(name));
        target.arg(&found).arg(saved_corpus(name));
        target.args([LONGEST_INPUT, SLOW_INPUT, MOST_MEMORY, "-print_final_stats=1"]);
        target.arg(format!("-max_total_time={}", long.as_secs()));
        target.arg(format!("-artifact_prefix={}/", artifacts.display())).stderr(output);
        target.stdout(std::process::Stdio::null());
        let child = target.spawn().map_err(|error| Failure::Failed(format!("{name} did not start: {error}")))?;
        let status = watch(name, child, &log, started)?;
        let said = Said::read(&text(&log)?);
        let found = files(&artifacts)?.difference(&before).cloned().collect();
        let ended = Ended { name: name.to_owned(), said, took: started.elapsed(), status, found };
        if ended.said.executions == 0 || (!ended.status.success() && ended.found.is_empty()) {
            return Err(Failure::Failed(format!("{name}: {status}; see {}", log.display())));
        }
        Ok(ended)
    }
}

/// What a target begins from. Changes to a body are looked for in the bodies that are described.
pub(crate) fn saved_corpus(name: &str) -> PathBuf {
    folder("corpus").join(if name == "changes" { "describe" } else { name })
}

fn folder(name: &str) -> PathBuf {
    machine::root().join("fuzz").join(name)
}

/// Waits for its end, and says how far it is now and then.
fn watch(name: &str, mut child: Child, log: &Path, started: Instant) -> Result<ExitStatus, Failure> {
    let mut next = EVERY;
    loop {
        let ended = child.try_wait().map_err(|error| Failure::Failed(format!("{name}: {error}")))?;
        if let Some(status) = ended {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(200));
        if started.elapsed() >= next {
            next += EVERY;
            let Said { executions, edges, .. } = Said::read(&text(log)?);
            eprintln!("{name}: {:.0} s, {executions} executions, {edges} edges", started.elapsed().as_secs_f64());
        }
    }
}

fn text(log: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(log).map_err(|error| Failure::file(log, &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn files(folder: &Path) -> Result<BTreeSet<PathBuf>, Failure> {
    let entries = folder.read_dir().map_err(|error| Failure::file(folder, &error))?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
}

impl Ended {
    pub(crate) fn cells(&self) -> [String; 8] {
        let Said { executions, edges, new_inputs, .. } = self.said;
        [
            self.name.clone(),
            executions.to_string(),
            format!("{:.0}", self.per_second()),
            edges.to_string(),
            self.new_edges().to_string(),
            new_inputs.to_string(),
            format!("{:.0}", self.took.as_secs_f64()),
            self.found.len().to_string(),
        ]
    }

    pub(crate) fn json(&self) -> Value {
        let Said { executions, edges, new_inputs, .. } = self.said;
        json!({
            "target": self.name,
            "executions": executions,
            "executions_per_second": self.per_second(),
            "edges": edges,
            "new_edges": self.new_edges(),
            "new_inputs": new_inputs,
            "seconds": self.took.as_secs_f64(),
            "findings": self.found.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
        })
    }

    /// A line for each finding.
    pub(crate) fn findings(&self) -> impl Iterator<Item = String> {
        self.found.iter().map(|file| {
            let file = file.strip_prefix(machine::root()).unwrap_or(file).display();
            format!("  {file}\n    RUSTC_BOOTSTRAP=1 cargo fuzz run {} {file}", self.name)
        })
    }

    fn per_second(&self) -> f64 {
        self.said.executions as f64 / self.took.as_secs_f64()
    }

    fn new_edges(&self) -> u64 {
        self.said.edges.saturating_sub(self.said.edges_at_first)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ended { name, said: Said { executions, .. }, took, found, .. } = self;
        write!(formatter, "{name}: {executions} executions in {:.0} s, {} found", took.as_secs_f64(), found.len())
    }
}
