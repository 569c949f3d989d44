//! The `isotherm` command: parses the command line and hands over to one file per command.

mod admin_client;
mod analyst;
mod aws;
mod commands;
mod emulated_instances;
mod exit;
mod flags;
mod fleet_of_engines;
mod inherited;
mod output;
mod router;
mod scenario_file;
mod signals;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Keeps every LLM prompt on the instance whose KV cache is already warm for it.
#[derive(Debug, Parser)]
#[command(name = "isotherm", version, about, after_help = AFTER_HELP, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  isotherm up                                        try it: emulated engines, router, admin plane
  isotherm serve --instance http://10.0.0.1:8000 --instance http://10.0.0.2:8000
  isotherm bench                                     what prefix-aware routing gains over random
  isotherm simulate --scenario aws-long              the same for a whole fleet and hour, in seconds
  isotherm analyze traffic.jsonl                     what your own traffic shares, and what to configure
  isotherm explain --config isotherm.yaml request.json
  isotherm doctor                                    what is wrong, and what helps

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 measured but not valid.";

#[derive(Debug, Subcommand)]
enum Command {
    Up(commands::up::Arguments),
    Serve(commands::serve::Arguments),
    Instances(commands::instances::Arguments),
    Top(commands::top::Arguments),
    Bench(commands::bench::Arguments),
    Simulate(commands::simulate::Arguments),
    Analyze(commands::analyze::Arguments),
    Explain(commands::explain::Arguments),
    Doctor(commands::doctor::Arguments),
    Engine(commands::engine::Arguments),
    Config(commands::config::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Where a person watches, only what is wrong is news; what a service does belongs into its log.
    output::start_logging(if matches!(arguments.command, Command::Serve(_)) { "info" } else { "warn" });
    output::keep_panics_brief();
    let done = match arguments.command {
        Command::Up(arguments) => commands::up::run(arguments),
        Command::Serve(arguments) => commands::serve::run(arguments),
        Command::Instances(arguments) => commands::instances::run(arguments),
        Command::Top(arguments) => commands::top::run(arguments),
        Command::Bench(arguments) => commands::bench::run(arguments),
        Command::Simulate(arguments) => commands::simulate::run(arguments),
        Command::Analyze(arguments) => commands::analyze::run(arguments),
        Command::Explain(arguments) => commands::explain::run(arguments),
        Command::Doctor(arguments) => commands::doctor::run(arguments),
        Command::Engine(arguments) => commands::engine::run(arguments),
        Command::Config(arguments) => commands::config::run(arguments),
    };
    exit::code(done)
}
