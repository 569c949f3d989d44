//! `cargo xtask mutants`: whether the tests of `core` notice when its code is changed, one small change at a time.

mod accepted;
mod outcomes;

use std::process::Child;
use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::machine;
use accepted::ACCEPTED;
use outcomes::Outcomes;

const HELP: &str = "\
Changes `core` in one place at a time (a comparison turned round, a function that returns nothing, …) and runs its tests
against each change. Fails when one survives that is not accepted, with a reason, in xtask/src/mutants/accepted.rs.

Usage: cargo xtask mutants [--file FILE]... [--minutes N]
       cargo xtask mutants --accepted

It works on a copy; about a thousand changes at two to three seconds each. The settings are in .cargo/mutants.toml.

Options:
  --file FILE   only this file, such as budget.rs or variant/choose/random.rs; may be given again
  --minutes N   the longest that it may take; what was not tried by then is said, and is a failure [default: 120]
  --accepted    list the changes that may survive, with their reasons
  -h, --help    this text";

/// Where the files lie that are changed, in the workspace.
const SOURCES: &str = "crates/core/src";
const INSTALL: &str = "cargo-mutants is not installed: `cargo install cargo-mutants --locked` installs it";
/// Property tests try fewer cases than by default, and look for no smaller case than the one that failed.
const PROPERTY_TESTS: [(&str, &str); 3] =
    [("PROPTEST_CASES", "64"), ("PROPTEST_MAX_SHRINK_ITERS", "0"), ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")];
/// What cargo-mutants ends with where changes were made and tested: all noticed, some survived, some timed out.
const TESTED: [i32; 3] = [0, 2, 3];

/// Tries the changes and sums up.
pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.help() {
        println!("{HELP}");
        return Ok(());
    }
    if arguments.flag("--accepted") {
        arguments.finish()?;
        print!("{}", accepted::list());
        return Ok(());
    }
    let files = arguments.values("--file")?;
    let minutes: f64 = arguments.value("--minutes")?.unwrap_or(120.0);
    arguments.finish()?;
    let Some(longest) = Duration::try_from_secs_f64(60.0 * minutes).ok().filter(|longest| !longest.is_zero()) else {
        return Err(Failure::Usage(format!("--minutes is a number above 0, not {minutes}")));
    };
    if let Some(missing) = files.iter().find(|file| !machine::root().join(SOURCES).join(file).is_file()) {
        return Err(Failure::Usage(format!("there is no {SOURCES}/{missing}")));
    }
    if machine::output(machine::cargo().args(["mutants", "--version"])).is_err() {
        return Err(Failure::Failed(INSTALL.to_owned()));
    }
    let in_time = test_changes(&files, longest)?;
    let outcomes = Outcomes::read(&results().join("outcomes.json"))?;
    println!("\n{}", outcomes.table(ACCEPTED));
    outcomes.judge(ACCEPTED)?;
    if in_time { Ok(()) } else { Err(Failure::Failed(format!("not all changes were tried in {minutes} minutes"))) }
}

fn results() -> std::path::PathBuf {
    machine::target().join("mutants.out")
}

/// False when time was over before all changes were tried.
fn test_changes(files: &[String], longest: Duration) -> Result<bool, Failure> {
    let mut command = machine::cargo();
    command.args(["mutants", "--package", "isotherm-core", "--no-shuffle", "--output"]).arg(machine::target());
    for file in files {
        command.args(["--file", &format!("{SOURCES}/{file}")]);
    }
    // Without debug information a change is built in less time.
    command.envs(PROPERTY_TESTS).envs([("CARGO_PROFILE_DEV_DEBUG", "false"), ("CARGO_INCREMENTAL", "1")]);
    let _ = std::fs::remove_dir_all(results());
    let started = command.spawn();
    let mut child = started.map_err(|error| Failure::Failed(format!("cargo mutants did not start: {error}")))?;
    let until = Instant::now() + longest;
    loop {
        let ended = child.try_wait().map_err(|error| Failure::Failed(format!("cargo mutants: {error}")))?;
        match ended {
            Some(status) if status.code().is_some_and(|code| TESTED.contains(&code)) => return Ok(true),
            Some(status) => return Err(Failure::Failed(format!("cargo mutants: {status}"))),
            None if Instant::now() >= until => break,
            None => std::thread::sleep(Duration::from_millis(200)),
        }
    }
    interrupt(&mut child)?;
    Ok(false)
}

/// As Ctrl-C does, so that it ends the tests that it started and removes its copy.
fn interrupt(child: &mut Child) -> Result<(), Failure> {
    machine::output(machine::command("kill").args(["-INT", &child.id().to_string()]))?;
    let ended = child.wait();
    ended.map(|_| ()).map_err(|error| Failure::Failed(format!("cargo mutants did not end: {error}")))
}
