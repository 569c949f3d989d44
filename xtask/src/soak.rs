//! `cargo xtask soak`: minutes of load on a release build; the test itself is the program `soak` in `tests/`.

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::machine;

const HELP: &str = "\
Closed-loop load at the machine's limit on `isotherm serve` with emulated engines behind it. Fails when a request
fails, when anything is left in flight, or when the router's memory grows: the median of the last quarter of the run
may be at most 1.1 times that of the second quarter, plus 8 MiB, and over the second half memory may rise by at most
4 MiB for a million requests. Tells how many days of 20 requests a second it came to.

Usage: cargo xtask soak [--minutes N]

Options:
  --minutes N   how long [default: 10]
  -h, --help    this text";

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.help() {
        println!("{HELP}");
        return Ok(());
    }
    let minutes: f64 = arguments.value("--minutes")?.unwrap_or(10.0);
    arguments.finish()?;
    let packages = ["--package", "isotherm", "--package", "isotherm-tests", "--bin", "isotherm", "--bin", "soak"];
    machine::run(machine::cargo().args(["build", "--release", "--locked"]).args(packages))?;
    let release = machine::target().join("release");
    let mut soak = machine::command(release.join("soak"));
    machine::run(soak.arg(minutes.to_string()).env("ISOTHERM_BIN", release.join("isotherm")))
}
