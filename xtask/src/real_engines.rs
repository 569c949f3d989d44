//! `cargo xtask real-engines`: two real vLLM replicas on the CPU behind the router, and what prefix-aware routing gains.

mod binary;
mod calibration;
mod document;
mod groups;
mod replica;
mod serve;
mod setup;

use std::path::PathBuf;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::machine;
use binary::Binary;
use replica::Replica;

const HELP: &str = "\
Sets up two real vLLM replicas on the CPU, with a small model of random weights, and measures through the router what
prefix-aware routing gains, and how right the router is about their caches. The figures go into docs/real-engines.md. Needs python3, 8 GB of memory and, the first
time, 6 GB of disk and some minutes to install.

Usage: cargo xtask real-engines [--folder FOLDER] [--requests N] [--binary FILE] [--without-load]

Options:
  --folder FOLDER   where vLLM and the model are kept [default: target/real-engines]
  --requests N      how many requests are measured under each strategy of each run [default: 60]
  --binary FILE     the router that is measured [default: target/release/isotherm, built anew]
  --without-load    leaves out what needs a quiet machine, prints the rest, and keeps docs/real-engines.md as it is
  -h, --help        this text";

const REPLICAS: usize = 2;

/// What `isotherm bench` is asked to measure on the two replicas: name, and its options.
const RUNS: [(&str, &[&str]); 2] =
    [("One user, one request after another", &["--users", "1"]), ("Four users at once", &["--users", "4"])];

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.help() {
        println!("{HELP}");
        return Ok(());
    }
    let folder = arguments.value("--folder")?.unwrap_or_else(|| machine::target().join("real-engines"));
    let requests: u32 = arguments.value("--requests")?.unwrap_or(60);
    let given: Option<PathBuf> = arguments.value("--binary")?;
    let without_load = arguments.flag("--without-load");
    arguments.finish()?;

    let folder = std::path::absolute(&folder).map_err(|error| Failure::file(&folder, &error))?;
    let installed = setup::install(&folder)?;
    let binary = Binary::of(given)?;
    // Whatever else runs makes the engines slower; it does not change what their caches hold.
    let busy = machine::load_average();
    let mut replicas = Vec::new();
    for ordinal in 0..REPLICAS {
        replicas.push(Replica::start(&installed, &folder, ordinal)?);
    }
    println!("two replicas start; this takes a minute or two");
    replicas.iter_mut().try_for_each(Replica::wait_until_ready)?;
    let urls: Vec<String> = replicas.iter().map(Replica::url).collect();

    let groups = groups::measure(&binary, &urls)?;
    println!("\n{groups}");
    let calibration = calibration::measure(&binary, &urls, &folder)?;
    println!("\n{calibration}");
    if without_load {
        return Ok(());
    }
    let mut tables = vec![(groups::TITLE, groups), (calibration::TITLE, calibration)];
    for (title, options) in RUNS {
        let table = bench(&binary, &urls, requests, options)?;
        println!("\n{title}\n\n{table}");
        tables.push((title, table));
    }
    document::write(&tables, &busy)
}

/// The comparison that `isotherm bench` makes, with documents of 2,000 tokens, which this model computes in about a
/// second.
fn bench(binary: &Binary, urls: &[String], requests: u32, options: &[&str]) -> Result<String, Failure> {
    let mut bench = binary.command();
    bench.arg("bench");
    for (ordinal, url) in urls.iter().enumerate() {
        bench.args(["--instance", &format!("replica-{ordinal}={url}")]);
    }
    bench.args(["--document-tokens", "2000", "--output-tokens", "16", "--think", "0"]);
    bench.args(["--strategies", "random,prefix-aware,adaptive"]);
    bench.args(["--requests", &requests.to_string()]).args(options);
    machine::output(&mut bench)
}
