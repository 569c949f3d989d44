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
better, worse or no different. Table and picture go into docs/simulator.md and docs/adaptive.svg, when all scenarios were
asked for. With 20 seeds it takes about an hour of one core.

Usage: cargo xtask compare [--seeds N] [--scenarios A,B,…] [--keep]

Options:
  --seeds N            how many seeds [default: 20]
  --scenarios A,B,…    only these
  --keep               do not repeat what target/compare/ holds already from an earlier run with as many seeds
  -h, --help           this text";

const SEEDS: u64 = 20;

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
        let kept = if keep { read(&file).ok().filter(|study| study["seeds"] == seeds) } else { None };
        let study = match kept {
            Some(study) => study,
            None => simulate(scenario, best, seeds, &file)?,
        };
        let row = Row::of(scenario, best, &study).ok_or_else(|| incomplete(&file))?;
        println!("{row}");
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

/// Runs a scenario; its study is kept in the file.
fn simulate(scenario: &str, best: &str, seeds: u64, file: &Path) -> Result<Value, Failure> {
    let unfinished = PathBuf::from(format!("{}.unfinished", file.display()));
    let strategies = format!("adaptive,prefix-aware@{best},{OTHERS}");
    let mut isotherm = machine::command(machine::target().join("release/isotherm"));
    isotherm.args(["simulate", "--scenario", scenario, "--strategies", &strategies]);
    isotherm.args(["--seeds", &seeds.to_string(), "--json"]).arg(&unfinished);
    machine::output(&mut isotherm)?;
    std::fs::rename(&unfinished, file).map_err(|error| Failure::file(file, &error))?;
    read(file)
}

fn read(file: &Path) -> Result<Value, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| Failure::file(file, &error))?;
    serde_json::from_str(&text).map_err(|error| Failure::Failed(format!("{}: {error}", file.display())))
}

fn incomplete(file: &Path) -> Failure {
    Failure::Failed(format!("{} does not hold all figures of all rules", file.display()))
}
