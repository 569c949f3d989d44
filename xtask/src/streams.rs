//! `cargo xtask streams`: thousands of streams at once on a release build; the test is the program `streams` in `tests/`.

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::machine;

const HELP: &str = "\
Holds thousands of streams at once through `isotherm serve`, an event a second each, with clients over HTTP/2 and engines
in processes of their own. Fails when a stream does not end whole, when anything is left in flight, or when a stream
costs more than 64 KiB of the router's memory. The descriptor limit (`ulimit -n`) must be above twice the streams.

Usage: cargo xtask streams [--streams N]

Options:
  --streams N   how many [default: 10000]
  -h, --help    this text";

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.help() {
        println!("{HELP}");
        return Ok(());
    }
    let streams: u32 = arguments.value("--streams")?.unwrap_or(10_000);
    arguments.finish()?;
    let packages = ["--package", "isotherm", "--package", "isotherm-tests", "--bin", "isotherm", "--bin", "streams"];
    machine::run(machine::cargo().args(["build", "--release", "--locked"]).args(packages))?;
    let release = machine::target().join("release");
    let mut program = machine::command(release.join("streams"));
    machine::run(program.arg(streams.to_string()).env("ISOTHERM_BIN", release.join("isotherm")))
}
