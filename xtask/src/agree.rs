//! `cargo xtask agree`: the same scenario in the simulator and over HTTP; whether both say the same.

mod document;
mod figures;

use std::path::Path;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::machine;
use figures::Pair;

const HELP: &str = "\
Runs one open-loop scenario in the simulator and by `isotherm bench` over HTTP with emulated engines: the same sessions
at the same times under each strategy. Fails unless the hit rates are within 3 points and the TTFT P50 within 15 % or
10 ms. The figures go into docs/agreement.md. Takes some seven minutes, and a machine that does little else.

Usage: cargo xtask agree [--scenario NAME|FILE] [--speed X]

Options:
  --scenario NAME|FILE   another scenario [default: xtask/scenarios/agree.yaml]
  --speed X              how many times faster than real ones the emulated engines run [default: 2]
  -h, --help             this text";

const SCENARIO: &str = "xtask/scenarios/agree.yaml";
const SPEED: f64 = 2.0;

/// Fewer requests than this say too little.
const LEAST_REQUESTS: u64 = 2_000;

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.help() {
        println!("{HELP}");
        return Ok(());
    }
    let scenario: String = arguments.value("--scenario")?.unwrap_or_else(|| SCENARIO.to_owned());
    let speed: f64 = arguments.value("--speed")?.unwrap_or(SPEED);
    arguments.finish()?;
    machine::run(machine::cargo().args(["build", "--release", "--locked", "--package", "isotherm"]))?;

    let folder = machine::target().join("agree");
    std::fs::create_dir_all(&folder).map_err(|error| Failure::file(&folder, &error))?;
    let simulated = folder.join("simulated.json");
    machine::run(isotherm("simulate", &scenario, &simulated).args(["--seeds", "1"]))?;
    let measured = folder.join("measured.json");
    let bench = machine::run(isotherm("bench", &scenario, &measured).args(["--speed", &speed.to_string()]));
    let pairs = figures::pairs(&figures::read(&simulated)?, &figures::read(&measured)?)?;
    let table = figures::table(&pairs);
    println!("\n{table}");
    // A run that must not be trusted has told its figures all the same.
    bench?;
    judge(&pairs)?;
    document::write(&scenario, speed, &table)
}

/// The release build, asked for a report.
fn isotherm(command: &str, scenario: &str, json: &Path) -> std::process::Command {
    let mut isotherm = machine::command(machine::target().join("release/isotherm"));
    isotherm.args([command, "--scenario", scenario, "--json"]).arg(json);
    isotherm
}

fn judge(pairs: &[Pair]) -> Result<(), Failure> {
    let mut complaints: Vec<String> = pairs.iter().flat_map(Pair::disagreements).collect();
    let few = pairs.iter().filter(|pair| pair.measured.requests < LEAST_REQUESTS);
    complaints.extend(few.map(|pair| {
        format!("{}: {} requests, but at least {LEAST_REQUESTS} are needed", pair.strategy, pair.measured.requests)
    }));
    if complaints.is_empty() { Ok(()) } else { Err(Failure::Failed(complaints.join("\n"))) }
}
