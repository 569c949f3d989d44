//! Both ends of a measurement, each in a process of its own: engines that answer at once, and users that ask them.
//! `cargo xtask perf` builds and runs it.

mod chunked;
mod engine;
mod load;

use std::process::ExitCode;

const USAGE: &str = "\
usage: perf engines COUNT
       perf load AUTHORITY CONNECTIONS SECONDS PROMPT_BYTES TOKENS   (TOKENS 0: not streamed)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let done = match words.as_slice() {
        ["engines", count] => count.parse().ok().map(|count| runtime.block_on(engine::serve(count))),
        ["load", rest @ ..] => load::Plan::parse(rest).map(|plan| runtime.block_on(load::run(plan))),
        _ => None,
    };
    match done {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
