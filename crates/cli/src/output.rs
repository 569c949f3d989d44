//! What commands print: results to standard output, messages and logs to standard error.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use tracing_subscriber::EnvFilter;

use crate::exit::{Failure, Outcome};

/// Sends log lines to standard error, from `level` on; `ISOTHERM_LOG` (say `debug`) chooses others, `NO_COLOR` turns
/// colours off.
pub(crate) fn start_logging(level: &str) {
    let filter = EnvFilter::try_from_env("ISOTHERM_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(colours)
        .with_target(false)
        .compact()
        .init();
}

/// Tells where the process panicked, never with what: a panic's message can hold a piece of somebody's prompt.
pub(crate) fn keep_panics_brief() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
        tracing::error!("a bug: panicked{place}");
    }));
}

/// Prints text to standard output. A reader that has seen enough (`| head`) is no failure.
pub(crate) fn print(text: &str) -> Outcome {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::running("standard output", error)),
        _ => Ok(()),
    }
}

/// Prints a value as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Outcome {
    let json = serde_json::to_string_pretty(value).map_err(|error| Failure::running("JSON", error))?;
    print(&(json + "\n"))
}

/// Writes a value as indented JSON to a file.
pub(crate) fn write_json(path: &std::path::Path, value: &impl Serialize) -> Outcome {
    let json = serde_json::to_string_pretty(value).map_err(|error| Failure::running("JSON", error))?;
    std::fs::write(path, json + "\n").map_err(|error| Failure::running(path.display(), error))
}
