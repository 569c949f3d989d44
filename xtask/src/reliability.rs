//! `cargo xtask reliability`: runs the tests that the pages about reliability name, and writes there what came out.

mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::machine;
use crate::test::clients;
use page::{Page, Tally};

const HELP: &str = "\
Runs the tests that docs/reliability.md and docs/peers-bugs.md name, and writes into both what came out: a row whose
tests do not all pass is no longer `shown`

Usage: cargo xtask reliability

Those through the front door run one at a time; a quarter of an hour on two cores, the build not counted.

Options:
  -h, --help    this text";

const PAGES: [&str; 2] = ["docs/reliability.md", "docs/peers-bugs.md"];

/// Whether each test passed, by its name without its module.
pub(crate) type Results = BTreeMap<String, bool>;

/// Runs the tests and writes the pages.
pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.help() {
        println!("{HELP}");
        return Ok(());
    }
    arguments.finish()?;
    let mut pages = PAGES.into_iter().map(Page::read).collect::<Result<Vec<Page>, Failure>>()?;
    let named: BTreeSet<String> = pages.iter().flat_map(Page::tests).collect();
    let (of_clients, names): (Vec<&String>, Vec<&String>) = named.iter().partition(|name| name.starts_with("test_"));
    let mut results = Results::new();
    let all_but_the_front_door = [
        "test",
        "--workspace",
        "--exclude",
        "isotherm-tests",
        "--lib",
        "--bins",
        "--tests",
        "--locked",
        "--no-fail-fast",
        "--",
    ];
    note(&mut results, &said(machine::cargo().args(all_but_the_front_door).args(&names))?);
    machine::run(machine::cargo().args(["build", "--package", "isotherm", "--locked"]))?;
    let front_door = ["test", "--package", "isotherm-tests", "--tests", "--locked", "--", "--test-threads=1"];
    note(&mut results, &said(machine::cargo().args(front_door).args(&names))?);
    if !of_clients.is_empty() {
        let mut pytest = clients::pytest()?;
        let wanted: Vec<&str> = of_clients.into_iter().map(String::as_str).collect();
        note_clients(&mut results, &said(pytest.args(["-rA", "-k", &wanted.join(" or ")]))?);
    }
    let mut sum = Tally::default();
    for page in &mut pages {
        sum += page.judge(&results);
        page.write()?;
    }
    println!("{sum}");
    if sum.is_good() { Ok(()) } else { Err(Failure::Failed("not all tests that are named passed".to_owned())) }
}

/// What a command prints, which is shown too, whatever its exit status.
fn said(command: &mut Command) -> Result<String, Failure> {
    let started = command.stderr(Stdio::inherit()).output();
    let output = started.map_err(|error| Failure::Failed(format!("{command:?} did not start: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{text}");
    Ok(text)
}

/// Takes lines like `test module::name ... ok`. A name that stands for several tests passes when all of them do.
fn note(results: &mut Results, text: &str) {
    for line in text.lines() {
        let Some((path, outcome)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) else {
            continue;
        };
        let name = path.split(' ').next().and_then(|path| path.rsplit("::").next()).unwrap_or_default();
        let passed = match outcome.trim() {
            "ok" => true,
            "FAILED" => false,
            _ => continue,
        };
        *results.entry(name.to_owned()).or_insert(true) &= passed;
    }
}

/// Takes lines like `PASSED tests/clients/test_x.py::test_name`.
fn note_clients(results: &mut Results, text: &str) {
    for line in text.lines() {
        let passed = match line.split(' ').next() {
            Some("PASSED") => true,
            Some("FAILED" | "ERROR") => false,
            _ => continue,
        };
        let name = line.split("::").last().and_then(|rest| rest.split([' ', '[']).next()).unwrap_or_default();
        *results.entry(name.to_owned()).or_insert(true) &= passed;
    }
}
