//! Developer commands: `cargo xtask test`, `agree`, `alarms`, `chaos`, `compare`, `dist`, `fuzz`, `mutants`, `perf`,
//! `soak`, `streams`, `reliability` and `real-engines`.

mod agree;
mod alarms;
mod arguments;
mod chaos;
mod compare;
mod dist;
mod failure;
mod fuzz;
mod machine;
mod mutants;
mod perf;
mod real_engines;
mod reliability;
mod soak;
mod streams;
mod test;

use std::process::ExitCode;

use arguments::Arguments;
use failure::Failure;

const HELP: &str = "\
Developer commands of Isotherm

Usage: cargo xtask COMMAND [OPTIONS]

Commands:
  test          format, lints, dependencies, unit, property and end-to-end tests, real clients; what CI runs
  agree         the same scenario in the simulator and over HTTP; whether both say the same
  alarms        an hour of emulated time in good health; no alarm may be raised
  chaos         random faults on a fleet under load; checks that no request is generated twice or left without a word
  compare       ADAPTIVE against every other rule on every scenario; writes the table and the picture
  dist          a fully static binary, its archive and a container file, in dist/
  fuzz          looks for bytes that break what reads bytes from outside; ten minutes a target
  mutants       changes `core` in one place after the other; fails when its tests do not notice
  perf          what the router costs, beside nginx, HAProxy and other routers; and its instruction counts
  soak          closed-loop load at the machine's limit; checks that the router's memory stays flat
  reliability   the tests that docs/reliability.md names, and their results into that page
  streams       ten thousand streams at once; checks that each ends whole and what it costs in memory
  real-engines  two real vLLM replicas behind the router: random against prefix-aware

`cargo xtask COMMAND --help` lists a command's options.";

fn main() -> ExitCode {
    let mut arguments = Arguments::new(std::env::args().skip(1));
    let command = arguments.command();
    let done = match command.as_deref() {
        Some("test") => test::run(arguments),
        Some("agree") => agree::run(arguments),
        Some("alarms") => alarms::run(arguments),
        Some("compare") => compare::run(arguments),
        Some("chaos") => chaos::run(arguments),
        Some("dist") => dist::run(arguments),
        Some("fuzz") => fuzz::run(arguments),
        Some("mutants") => mutants::run(arguments),
        Some("perf") => perf::run(arguments),
        Some("real-engines") => real_engines::run(arguments),
        Some("reliability") => reliability::run(arguments),
        Some("soak") => soak::run(arguments),
        Some("streams") => streams::run(arguments),

        None | Some("help" | "--help" | "-h") => {
            println!("{HELP}");
            Ok(())
        }
        Some(other) => Err(Failure::Usage(format!("there is no command `{other}`\n\n{HELP}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            failure.exit_code()
        }
    }
}
