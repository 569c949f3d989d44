//! The steps of a test run, cheapest first.

use super::{Outcome, clients, dependencies};
use crate::machine;
use crate::perf;

/// One step: its name for `--only`, what it does in words, and whether it needs the built binary.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) needs_build: bool,
    pub(crate) run: fn() -> Outcome,
}

/// The step that builds the binary and all tests.
pub(crate) const BUILD: &str = "build";

pub(crate) const STEPS: &[Step] = &[
    Step { name: "format", what: "rustfmt finds nothing to change", needs_build: false, run: format },
    Step { name: "dependencies", what: "licences, bans and sources", needs_build: false, run: dependencies::run },
    Step { name: "lints", what: "clippy without a warning", needs_build: false, run: lints },
    Step { name: BUILD, what: "the binary and all tests", needs_build: false, run: build },
    Step { name: "tests", what: "unit, property and end-to-end tests", needs_build: true, run: tests },
    Step { name: "examples", what: "the examples in the documentation", needs_build: true, run: examples },
    Step { name: "interleavings", what: "the fleet's lock under every order", needs_build: true, run: interleavings },
    Step { name: "clients", what: "openai, anthropic, AWS's, curl and promtool", needs_build: true, run: clients::run },
    Step { name: "instructions", what: "what the hot path takes", needs_build: false, run: instructions },
];

fn format() -> Outcome {
    machine::run(machine::cargo().args(["fmt", "--all", "--check"])).into()
}

fn lints() -> Outcome {
    let lints = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    machine::run(machine::cargo().args(lints)).into()
}

/// One build for all that follows, so that features and profile are the same everywhere.
fn build() -> Outcome {
    machine::run(machine::cargo().args(["build", "--workspace", "--all-targets", "--locked"])).into()
}

fn tests() -> Outcome {
    let runner: &[&str] = match machine::has("cargo-nextest") {
        true if machine::is_ci() => &["nextest", "run", "--profile", "ci"],
        true => &["nextest", "run"],
        false => &["test", "--all-targets", "--no-fail-fast"],
    };
    machine::run(machine::cargo().args(runner).args(["--workspace", "--locked"])).into()
}

fn examples() -> Outcome {
    machine::run(machine::cargo().args(["test", "--doc", "--workspace", "--locked"])).into()
}

fn interleavings() -> Outcome {
    let fleet = ["test", "--package", "isotherm-fleet", "--features", "shuttle", "--lib", "--locked"];
    machine::run(machine::cargo().args(fleet)).into()
}

fn instructions() -> Outcome {
    if !machine::has("valgrind") {
        return Outcome::Skipped("valgrind is not installed".to_owned());
    }
    perf::count::check().into()
}
