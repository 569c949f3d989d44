//! `cargo xtask compare`: `ADAPTIVE` against every other rule on every shipped scenario; the table and the picture of it.

mod document;
mod picture;
mod verdict;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::machine;
use verdict::Row;

const HELP: &str = "\
Simulates every shipped scenario under ADAPTIVE and seven other rules with the same seeds, PREFIX_AWARE with the
parameters that `isotherm simulate --tune ttft_mean` finds for the scenario, and says for each figure whether ADAPTIVE is
better, worse or no different. Where it is worse, 60 fresh seeds decide. Table and picture go into docs/simulator.md and
docs/adaptive.svg, when all scenarios were asked for. With 20 seeds it takes about an hour of one core.

Usage: cargo xtask compare [--seeds N] [--scenarios A,B,…] [--keep]

Options:
  --seeds N            how many seeds [default: 20]
  --scenarios A,B,…    only these
  --keep               do not repeat what target/compare/ holds already from an earlier run with as many seeds
  -h, --help           this text";

const SEEDS: u64 = 20;
/// How many seeds that nobody has seen decide whether a figure is worse.
const FRESH_SEEDS: u64 = 60;

/// The scenarios, and with which parameters `PREFIX_AWARE` has the least mean TTFT there.
const SCENARIOS: [(&str, &str); 15] = [
    ("aws-long", "16384/12"),
    ("aws-sharegpt", "169/19"),
    ("hot-prefix", "6554/676"),
    ("cache-pressure", "256/16"),
    ("cold-burst", "43254/4"),
    ("no-sharing", "4096/5"),
    ("mooncake", "8192/12"),
    ("agents", "65536/19"),
    ("long-output", "256/1024"),
    ("small-model", "169/38"),
    ("fp8", "16384/24"),
    ("mixed-fleet", "1280/16"),
    ("scale-out-in", "2048/24"),
    ("instance-failure", "256/24"),
    ("multi-tenant", "320/32"),
];

/// The rules of others, as `--strategies` takes them.
const OTHERS: &str = "chwbl,cache-aware,sticky,lmetric,session-hash,least-outstanding-requests";

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.help() {
        println!("{HELP}");
        return Ok(());
    }
    let seeds: u64 = arguments.value("--seeds")?.unwrap_or(SEEDS);
    let wanted: Option<String> = arguments.value("--scenarios")?;
    let keep = arguments.flag("--keep");
    arguments.finish()?;
    let scenarios = chosen(wanted.as_deref())?;
    machine::run(machine::cargo().args(["build", "--release", "--locked", "--package", "isotherm"]))?;

    let folder = machine::target().join("compare");
    std::fs::create_dir_all(&folder).map_err(|error| Failure::file(&folder, &error))?;
    let mut rows = Vec::with_capacity(scenarios.len());
    for &(scenario, best) in &scenarios {
        let file = folder.join(format!("{scenario}.json"));
        let strategies = format!("adaptive,prefix-aware@{best},{OTHERS}");
        let study = study(&Asked { scenario, strategies, seeds, first: 1 }, &file, keep)?;
        let mut row = Row::of(scenario, best, &study).ok_or_else(|| incomplete(&file))?;
        println!("{row}");
        if let Some(rules) = row.worse_than() {
            let file = folder.join(format!("{scenario}.fresh.json"));
            let fresh =
                Asked { scenario, strategies: format!("adaptive,{rules}"), seeds: FRESH_SEEDS, first: seeds + 1 };
            let fresh = self::study(&fresh, &file, keep)?;
            row.decide(&fresh).ok_or_else(|| incomplete(&file))?;
            println!("  with fresh seeds {row}");
        }
        rows.push(row);
    }
    println!("\n{}", verdict::Count::of(&rows));
    if wanted.is_none() {
        document::write(&rows, seeds)?;
        picture::write(&rows, seeds)?;
    }
    Ok(())
}

fn chosen(wanted: Option<&str>) -> Result<Vec<(&'static str, &'static str)>, Failure> {
    let Some(wanted) = wanted else { return Ok(SCENARIOS.to_vec()) };
    let find = |name: &str| {
        let found = SCENARIOS.iter().find(|(scenario, _)| *scenario == name).copied();
        let all = SCENARIOS.map(|(scenario, _)| scenario).join(", ");
        found.ok_or_else(|| Failure::Usage(format!("there is no scenario `{name}`; there are {all}")))
    };
    wanted.split(',').map(find).collect()
}

/// What is simulated.
struct Asked<'a> {
    scenario: &'a str,
    /// The first is `ADAPTIVE`, to which the others are compared.
    strategies: String,
    seeds: u64,
    first: u64,
}

/// The study that was asked for; what the file holds of an earlier run is good enough where `keep` says so.
fn study(asked: &Asked<'_>, file: &Path, keep: bool) -> Result<Value, Failure> {
    let kept = if keep { read(file).ok().filter(|study| asked.is_answered_by(study)) } else { None };
    kept.map_or_else(|| simulate(asked, file), Ok)
}

impl Asked<'_> {
    fn is_answered_by(&self, study: &Value) -> bool {
        let names = study["strategies"].as_array().into_iter().flatten();
        let names: Vec<String> = names.filter_map(|strategy| Some(as_flag(strategy["strategy"].as_str()?))).collect();
        study["seeds"] == self.seeds && study["seed"] == self.first && names.join(",") == self.strategies
    }
}

/// Runs a scenario; its study is kept in the file.
fn simulate(asked: &Asked<'_>, file: &Path) -> Result<Value, Failure> {
    let unfinished = PathBuf::from(format!("{}.unfinished", file.display()));
    let mut isotherm = machine::command(machine::target().join("release/isotherm"));
    isotherm.args(["simulate", "--scenario", asked.scenario, "--strategies", &asked.strategies]);
    isotherm.args(["--seeds", &asked.seeds.to_string(), "--first-seed", &asked.first.to_string()]);
    isotherm.arg("--json").arg(&unfinished);
    machine::output(&mut isotherm)?;
    std::fs::rename(&unfinished, file).map_err(|error| Failure::file(file, &error))?;
    read(file)
}

/// A strategy as `--strategies` takes it.
fn as_flag(strategy: &str) -> String {
    strategy.to_lowercase().replace('_', "-")
}

fn read(file: &Path) -> Result<Value, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| Failure::file(file, &error))?;
    serde_json::from_str(&text).map_err(|error| Failure::Failed(format!("{}: {error}", file.display())))
}

fn incomplete(file: &Path) -> Failure {
    Failure::Failed(format!("{} does not hold all figures of all rules", file.display()))
}
