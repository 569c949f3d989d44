//! `cargo xtask chaos`: minutes of random faults on a release build; the test itself is the program `chaos` in `tests/`.

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::machine;

const HELP: &str = "\
Users ask `isotherm serve` with five emulated engines in processes of their own, while engines are killed and restarted,
hang, slow down, fail and shed, the file is reloaded and lists more or fewer of them, and users leave. Fails when a
request was generated to its end twice, ended otherwise than in an answer or an error that says what happened, or left
anything in flight. The same seed gives the same faults.

Usage: cargo xtask chaos [--minutes N] [--seed S]

Options:
  --minutes N   how long [default: 2]
  --seed S      which faults [default: 1]
  -h, --help    this text";

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.help() {
        println!("{HELP}");
        return Ok(());
    }
    let minutes: f64 = arguments.value("--minutes")?.unwrap_or(2.0);
    let seed: u64 = arguments.value("--seed")?.unwrap_or(1);
    arguments.finish()?;
    let packages = ["--package", "isotherm", "--package", "isotherm-tests", "--bin", "isotherm", "--bin", "chaos"];
    machine::run(machine::cargo().args(["build", "--release", "--locked"]).args(packages))?;
    let release = machine::target().join("release");
    let mut chaos = machine::command(release.join("chaos"));
    machine::run(chaos.args([minutes.to_string(), seed.to_string()]).env("ISOTHERM_BIN", release.join("isotherm")))
}
