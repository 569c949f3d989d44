//! `cargo xtask perf`: what the router costs, beside other routers on the same machine; and instruction counts.

mod ahead;
mod chart;
pub(crate) mod count;
mod document;
mod figures;
mod measure;
mod peers;
mod plan;
mod process;
mod targets;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::machine;
use figures::Results;
use peers::Subject;
use plan::Plan;
use process::Engines;

/// How long all are left alone before their memory is noted.
const SETTLE: Duration = Duration::from_secs(10);

const HELP: &str = "\
Measures what the router costs: direct, Isotherm, nginx, HAProxy, vllm-router, sglang-router and smg in one interleaved
run on this machine, in front of engines that answer at once. Peers come from Debian packages and Python wheels, are
installed into target/perf the first time, and are skipped by name where that fails. The figures go into
docs/benchmarks. Needs a machine that does nothing else.

Usage: cargo xtask perf [--quick | --full] [--litellm] [--only NAME]... [--profile NAME | --built FOLDER]
                        [--rounds N] [--seconds S] [--output FOLDER]
       cargo xtask perf --count [--save]

Options:
  --quick           3 rounds of 0.6 s, and prompts of 1 MB and concurrency 512 in one of them: some 10 minutes
                    [default: 5 rounds of 2 s without those, some 18 minutes]
  --full            prompts of 1 MB and concurrency 512 too, and both together, in every third round
  --litellm         LiteLLM too, even if it has to be installed, which takes minutes; it is slow, so it is measured in
                    the first round only, and where targets hold
  --only NAME       only these, beside direct; may be given again: isotherm, isotherm-adaptive, nginx, haproxy,
                    vllm-router, sglang-router, smg, litellm
  --profile NAME    how Isotherm is built [default: dist]
  --built FOLDER    measures what was built before: the programs isotherm and perf in this folder
  --rounds N        how many rounds
  --seconds S       how long a measurement takes
  --output FOLDER   where the figures go [default: docs/benchmarks]
  --count           counts the instructions of a decision, an extraction and a relayed stream under valgrind; fails when
                    one differs by more than 5 % from what docs/benchmarks/instructions.json keeps
  --save            keeps the new counts
  -h, --help        this text";

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.help() {
        println!("{HELP}");
        return Ok(());
    }
    if arguments.flag("--count") {
        let save = arguments.flag("--save");
        arguments.finish()?;
        return if save { count::save() } else { count::check() };
    }
    let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    let plan = Plan::take(&mut arguments)?;
    let profile: String = arguments.value("--profile")?.unwrap_or_else(|| "dist".to_owned());
    let built: Option<PathBuf> = arguments.value("--built")?;
    let output = arguments.value("--output")?.unwrap_or_else(|| machine::root().join("docs/benchmarks"));
    arguments.finish()?;

    let commit = machine::output(machine::command("git").args(["rev-parse", "--short", "HEAD"]));
    let commit = commit.as_deref().unwrap_or("unknown").trim();
    let (built, origin) = match built {
        Some(folder) => {
            let found = std::path::absolute(&folder).map_err(|error| Failure::file(&folder, &error))?;
            (found, format!("built earlier, from {} (commit {commit} or before)", folder.display()))
        }
        None => (build(&profile)?, format!("built by profile `{profile}` at commit {commit}")),
    };
    let busy = machine::load_average();
    let engines = Engines::start(&built.join("perf"))?;
    let (mut subjects, skipped) = peers::start(&plan, &engines.urls, &built.join("isotherm"));
    println!("load average {busy} before the start; {}", plan.about(subjects.len() + 1));
    let results = interleaved(&plan, &mut subjects, &engines, &built)?;
    document::write(&output, &document::Page { command, plan, origin, busy, skipped, results })
}

/// Ours alone: peers are what their packages hold.
fn build(profile: &str) -> Result<PathBuf, Failure> {
    let packages = ["--package", "isotherm", "--package", "isotherm-tests", "--bin", "isotherm", "--bin", "perf"];
    machine::run(machine::cargo().args(["build", "--locked", "--profile", profile]).args(packages))?;
    Ok(machine::target().join(if profile == "dev" { "debug" } else { profile }))
}

/// Each round measures every case with every subject, one right after the other, so that whatever else the machine does
/// meets all of them alike. Rounds begin with another subject each.
fn interleaved(
    plan: &Plan,
    subjects: &mut [Subject],
    engines: &Engines,
    built: &std::path::Path,
) -> Result<Results, Failure> {
    let started = Instant::now();
    let mut results = Results::new(subjects);
    for round in 0..plan.rounds {
        for &case in plan.cases.iter().filter(|case| round < plan.rounds_of(**case)) {
            let direct = measure::once(&built.join("perf"), &engines.direct(), None, engines, case, plan)?;
            results.add(None, case, direct);
            for turn in 0..subjects.len() {
                let index = (turn + round) % subjects.len();
                let subject = &subjects[index];
                // The rest of its figures would take as long as all others together.
                if subject.is_slow() && (round > 0 || !case.has_targets()) {
                    continue;
                }
                let Subject { authority, process, .. } = subject;
                let sample = measure::once(&built.join("perf"), authority, Some(process), engines, case, plan)?;
                results.add(Some(index), case, sample);
            }
            let after = started.elapsed().as_secs_f64();
            println!(
                "{after:4.0} s: round {} of {}, {}, {} at once",
                round + 1,
                plan.rounds,
                case.shape(),
                case.connections
            );
        }
    }
    println!("{:4.0} s: waiting for what each gives back of its memory", started.elapsed().as_secs_f64());
    std::thread::sleep(SETTLE);
    results.note_memory(subjects);
    Ok(results)
}
