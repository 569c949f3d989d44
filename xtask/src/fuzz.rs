//! `cargo xtask fuzz`: looks for bytes that break what reads bytes from outside, target after target.

mod log;
mod target;

use std::time::Duration;

use isotherm_report::{Align, Table};
use serde_json::json;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::machine;
use target::{Built, Ended};

const HELP: &str = "\
Runs the targets of fuzz/ one after the other, each on one core, from its saved corpus; ends with a table, and with exit
code 1 when something was found: a panic, a broken rule, a bad access to memory, an input that takes too long or too much.
A finding ends its target's run.

Usage: cargo xtask fuzz [--minutes N] [--json] [TARGET]...
       cargo xtask fuzz --list

It needs cargo-fuzz and a C++ compiler; Rust's stable toolchain is enough. What is found lies in fuzz/artifacts/TARGET,
new inputs in fuzz/target/found/TARGET, where the next run begins too, and all that is said in fuzz/target/log.

Options:
  --minutes N   how long each target runs [default: 10]
  --json        the table as JSON, on standard output; all else goes to standard error
  --list        the targets
  -h, --help    this text

Examples:
  cargo xtask fuzz                               all of them, some 100 minutes
  cargo xtask fuzz --minutes 1 describe trace    two of them, a minute each";

const TARGETS: &str = "fuzz/fuzz_targets";
/// What builds libFuzzer, by the names that its build looks for.
const COMPILERS: [&str; 3] = ["c++", "g++", "clang++"];

/// Builds the targets, runs them and sums up.
pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.help() {
        println!("{HELP}");
        return Ok(());
    }
    let all = targets()?;
    if arguments.flag("--list") {
        arguments.finish()?;
        println!("{}", all.join("\n"));
        return Ok(());
    }
    let as_json = arguments.flag("--json");
    let minutes: f64 = arguments.value("--minutes")?.unwrap_or(10.0);
    let whole_seconds = Duration::try_from_secs_f64(60.0 * minutes).ok().filter(|long| long.as_secs() >= 1);
    let Some(long) = whole_seconds else {
        return Err(Failure::Usage(format!("--minutes is a number of at least one second, not {minutes}")));
    };
    let chosen = choose(arguments.rest()?, all)?;
    machine_has_what_it_takes()?;

    let built = Built::build()?;
    let mut ended = Vec::new();
    for (index, name) in chosen.iter().enumerate() {
        eprintln!("=== [{}/{}] {name}, {minutes} min", index + 1, chosen.len());
        let target = built.run(name, long)?;
        eprintln!("=== {target}");
        ended.push(target);
    }
    if as_json {
        println!("{}", json!(ended.iter().map(Ended::json).collect::<Vec<_>>()))
    } else {
        print!("\n{}", table(&ended))
    }
    judge(&ended)
}

/// The targets by name.
fn targets() -> Result<Vec<String>, Failure> {
    let folder = machine::root().join(TARGETS);
    let entries = folder.read_dir().map_err(|error| Failure::file(&folder, &error))?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let sources = files.filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    let mut names: Vec<String> =
        sources.filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    Ok(names)
}

/// Those that were named, in that order; all without a name.
fn choose(named: Vec<String>, all: Vec<String>) -> Result<Vec<String>, Failure> {
    match named.iter().find(|name| !all.contains(name)) {
        Some(unknown) => Err(Failure::Usage(format!("there is no target `{unknown}`; there are {}", all.join(", ")))),
        None if named.is_empty() => Ok(all),
        None => Ok(named),
    }
}

fn machine_has_what_it_takes() -> Result<(), Failure> {
    if machine::output(machine::cargo().args(["fuzz", "--version"])).is_err() {
        let how = "cargo-fuzz is not installed: `cargo install cargo-fuzz --locked` installs it";
        return Err(Failure::Failed(how.to_owned()));
    }
    if std::env::var_os("CXX").is_none() && !COMPILERS.iter().any(|name| machine::has(name)) {
        let how = "there is no C++ compiler, which builds libFuzzer: install g++ or clang, or name one in CXX";
        return Err(Failure::Failed(how.to_owned()));
    }
    Ok(())
}

fn table(ended: &[Ended]) -> Table {
    let columns = ["target", "executions", "a second", "edges", "new edges", "new inputs", "seconds", "findings"];
    let mut table = Table::new(std::iter::once(Align::Left).chain([Align::Right; 7]));
    table.row(columns);
    for target in ended {
        table.row(target.cells());
    }
    table
}

/// A failure names every finding by its file and how to see it again.
fn judge(ended: &[Ended]) -> Result<(), Failure> {
    let findings: Vec<String> = ended.iter().flat_map(Ended::findings).collect();
    if findings.is_empty() { Ok(()) } else { Err(Failure::Failed(format!("found\n{}", findings.join("\n")))) }
}

#[cfg(test)]
mod tests {
    use super::{choose, targets};

    #[test]
    fn every_target_is_run_unless_some_are_named_and_an_unknown_one_is_told_what_there_is() {
        let all = targets().unwrap();
        assert!(all.iter().any(|name| name == "describe"));
        assert_eq!(choose(Vec::new(), all.clone()).unwrap(), all);
        assert_eq!(choose(vec!["trace".to_owned(), "config".to_owned()], all.clone()).unwrap(), ["trace", "config"]);
        assert!(choose(vec!["traces".to_owned()], all).unwrap_err().to_string().contains("there are changes, config,"));
    }

    #[test]
    fn every_target_has_a_saved_corpus_to_begin_from() {
        for target in targets().unwrap() {
            let corpus = super::target::saved_corpus(&target);
            assert!(corpus.read_dir().unwrap().next().is_some(), "{} is empty", corpus.display());
        }
    }
}
