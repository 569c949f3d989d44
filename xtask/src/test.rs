//! `cargo xtask test`: everything that must hold before a change lands, step by step.

pub(crate) mod clients;
mod dependencies;
mod steps;

use std::io::Write;
use std::time::{Duration, Instant};

use isotherm_report::{Align, Table};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::machine;
use steps::{STEPS, Step};

const HELP: &str = "\
Runs everything that must hold before a change lands

Usage: cargo xtask test [--only STEP]...

A tool that is missing makes its step or tests skip by name; where CI=true a skip is a failure.
The two tools that can be installed by name are: cargo-deny by cargo, once; in CI, Prometheus by apt.

Options:
  --only STEP   run this step, and the build where it needs one; may be given again
  -h, --help    this text

Steps:";

/// How a step ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    /// Not done for want of a tool, named here.
    Skipped(String),
}

impl From<Result<(), Failure>> for Outcome {
    fn from(done: Result<(), Failure>) -> Outcome {
        match done {
            Ok(()) => Outcome::Passed,
            Err(failure) => Outcome::Failed(failure.to_string()),
        }
    }
}

struct Ended {
    step: &'static Step,
    outcome: Outcome,
    took: Duration,
}

/// Runs the steps that the command line asks for, all of them by default, and sums up.
pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.help() {
        println!("{HELP}\n{}", step_list());
        return Ok(());
    }
    let only = arguments.values("--only")?;
    arguments.finish()?;
    let chosen = choose(&only)?;
    let mut ended: Vec<Ended> = Vec::new();
    for (index, step) in chosen.iter().enumerate() {
        println!("\n=== [{}/{}] {}: {}", index + 1, chosen.len(), step.name, step.what);
        let _ = std::io::stdout().flush();
        let started = Instant::now();
        let outcome = if step.needs_build && build_failed(&ended) {
            Outcome::Failed("not run: the build failed".to_owned())
        } else {
            in_ci((step.run)())
        };
        let took = started.elapsed();
        println!("=== {}: {} in {:.1} s", step.name, word(&outcome), took.as_secs_f64());
        ended.push(Ended { step, outcome, took });
    }
    conclude(&ended)
}

/// The steps named, with the build before those that need it; all without a name.
fn choose(only: &[String]) -> Result<Vec<&'static Step>, Failure> {
    if let Some(unknown) = only.iter().find(|name| !STEPS.iter().any(|step| step.name == **name)) {
        return Err(Failure::Usage(format!("there is no step `{unknown}`; there are:\n{}", step_list())));
    }
    let named = |step: &Step| only.is_empty() || only.iter().any(|name| name == step.name);
    let build_needed = STEPS.iter().any(|step| named(step) && step.needs_build);
    Ok(STEPS.iter().filter(|step| named(step) || (build_needed && step.name == steps::BUILD)).collect())
}

fn step_list() -> String {
    let mut table = Table::new([Align::Left, Align::Left, Align::Left]);
    for step in STEPS {
        table.row(["", step.name, step.what]);
    }
    table.to_string()
}

fn build_failed(ended: &[Ended]) -> bool {
    ended.iter().any(|ended| ended.step.name == steps::BUILD && matches!(ended.outcome, Outcome::Failed(_)))
}

/// Where CI runs, what is not tested counts as broken.
fn in_ci(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Skipped(reason) if machine::is_ci() => Outcome::Failed(format!("skipped in CI: {reason}")),
        outcome => outcome,
    }
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed(_) => "FAILED",
        Outcome::Skipped(_) => "skipped",
    }
}

/// Prints the table, the counts, and last what failed.
fn conclude(ended: &[Ended]) -> Result<(), Failure> {
    let mut table = Table::new([Align::Left, Align::Left, Align::Right, Align::Left]);
    table.row(["step", "result", "seconds", ""]);
    for Ended { step, outcome, took } in ended {
        let remark = match outcome {
            Outcome::Passed => "",
            Outcome::Failed(reason) | Outcome::Skipped(reason) => reason.lines().next().unwrap_or_default(),
        };
        table.row([step.name, word(outcome), &format!("{:.1}", took.as_secs_f64()), remark]);
    }
    let total: Duration = ended.iter().map(|ended| ended.took).sum();
    table.row(["", "", &format!("{:.1}", total.as_secs_f64()), "in all"]);
    let count = |wanted: fn(&Outcome) -> bool| ended.iter().filter(|ended| wanted(&ended.outcome)).count();
    let failed: Vec<&str> =
        ended.iter().filter(|ended| matches!(ended.outcome, Outcome::Failed(_))).map(|ended| ended.step.name).collect();
    println!("\n{table}");
    println!(
        "{} passed, {} failed, {} skipped",
        count(|outcome| matches!(outcome, Outcome::Passed)),
        failed.len(),
        count(|outcome| matches!(outcome, Outcome::Skipped(_)))
    );
    if failed.is_empty() { Ok(()) } else { Err(Failure::Failed(format!("failed: {}", failed.join(", ")))) }
}
