//! `cargo xtask reliability`: runs the tests that the pages about reliability name, and writes there what came out.

mod page;
mod programs;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::test::clients;
use page::{Page, Tally};
use programs::Programs;

const HELP: &str = "\
Runs the tests that docs/reliability.md and docs/peers-bugs.md name, and writes into both what came out: a row whose
tests do not all pass is no longer `shown`. Fails also when anything that the tests print holds a prompt or a key that
they sent

Usage: cargo xtask reliability [--built FILE]

Those through the front door run one at a time; a quarter of an hour on two cores, the build not counted.

Options:
  --built FILE   run what is built, of which this file tells: the output of
                 `cargo build --workspace --lib --bins --tests --message-format=json-render-diagnostics`, and behind it
                 that of the same with `--package isotherm-fleet --features shuttle` in place of `--workspace`
  -h, --help     this text";

/// What tests send as prompts, answers, tools and keys: a failure that prints one would tell it.
const CANARIES: [&str; 9] = [
    "canaryprompt7261",
    "canarytool7262",
    "Y2FuYXJ5aW1hZ2U3MjYz",
    "canarykey7264",
    "canaryargument7265",
    "canary-prompt",
    "canary-answer",
    "canary-key",
    "canary-query",
];

const PAGES: [&str; 2] = ["docs/reliability.md", "docs/peers-bugs.md"];

/// Whether each test passed, by its name without its module.
pub(crate) type Results = BTreeMap<String, bool>;

/// Runs the tests and writes the pages.
pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.help() {
        println!("{HELP}");
        return Ok(());
    }
    let built: Option<PathBuf> = arguments.value("--built")?;
    arguments.finish()?;
    let mut pages = PAGES.into_iter().map(Page::read).collect::<Result<Vec<Page>, Failure>>()?;
    let named: BTreeSet<String> = pages.iter().flat_map(Page::tests).collect();
    let (of_clients, names): (Vec<&String>, Vec<&String>) = named.iter().partition(|name| name.starts_with("test_"));
    let programs = Programs::built(built.as_deref())?;
    let begun = Instant::now();
    let mut results = programs.run(&names)?;
    if !of_clients.is_empty() {
        let mut pytest = clients::pytest()?;
        pytest.env("ISOTHERM_BIN", &programs.binary);
        let wanted: Vec<&str> = of_clients.into_iter().map(String::as_str).collect();
        note_clients(&mut results, &said(pytest.args(["-rA", "-k", &wanted.join(" or ")]))?);
    }
    let mut sum = Tally::default();
    for page in &mut pages {
        sum += page.judge(&results);
        page.write()?;
    }
    println!("{sum}, within {:.1} minutes", begun.elapsed().as_secs_f64() / 60.0);
    if sum.is_good() { Ok(()) } else { Err(Failure::Failed("not all tests that are named passed".to_owned())) }
}

/// What a command prints, which is shown too, whatever its exit status.
fn said(command: &mut Command) -> Result<String, Failure> {
    let started = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| Failure::Failed(format!("{command:?} did not start: {error}")))?;
    let [out, err]: [Option<Box<dyn Read + Send>>; 2] =
        [child.stdout.take().map(|out| Box::new(out) as _), child.stderr.take().map(|err| Box::new(err) as _)];
    let others = std::thread::spawn(move || shown(err));
    let text = shown(out);
    let others = others.join().unwrap_or_default();
    let _ = child.wait();
    match CANARIES.iter().find(|canary| text.contains(**canary) || others.contains(**canary)) {
        Some(canary) => Err(Failure::Failed(format!("the tests print {canary}, which one of them sent as a secret"))),
        None => Ok(text),
    }
}

/// Shows lines as they come, and keeps them.
fn shown(stream: Option<Box<dyn Read + Send>>) -> String {
    let mut text = String::new();
    for line in stream.into_iter().flat_map(|stream| BufReader::new(stream).split(b'\n')).map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        text.push_str(&line);
        text.push('\n');
    }
    text
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
