//! `cargo xtask alarms`: whether the router's own alarms keep quiet where all is well; the test itself is the program
//! `alarms` in `tests/`.

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::machine;

const HELP: &str = "\
Mixed traffic (documents, conversations, prompts that nobody shares) on a healthy fleet of emulated engines, 60 times
faster than real ones. Fails when the router raises any alarm; its rules fire at once instead of after minutes.

Usage: cargo xtask alarms [--minutes N]

Options:
  --minutes N   how long, in emulated time [default: 60]
  -h, --help    this text";

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.help() {
        println!("{HELP}");
        return Ok(());
    }
    let minutes: f64 = arguments.value("--minutes")?.unwrap_or(60.0);
    arguments.finish()?;
    let packages = ["--package", "isotherm", "--package", "isotherm-tests", "--bin", "isotherm", "--bin", "alarms"];
    machine::run(machine::cargo().args(["build", "--locked"]).args(packages))?;
    let built = machine::target().join("debug");
    let mut alarms = machine::command(built.join("alarms"));
    machine::run(alarms.arg(minutes.to_string()).env("ISOTHERM_BIN", built.join("isotherm")))
}
