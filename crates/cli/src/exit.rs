//! How a command ends: its error, told to a person, and its exit code.

use std::fmt;
use std::process::ExitCode;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was asked wrongly: flags, a configuration, an input file. Exit code 2.
    Usage(String),
    /// It went wrong while running. Exit code 1.
    Running(String),
    /// It measured, but the figures do not count. Exit code 3.
    Invalid(String),
}

impl Failure {
    /// A failure while doing something: `context: error`.
    pub(crate) fn running(context: impl fmt::Display, error: impl fmt::Display) -> Failure {
        Failure::Running(format!("{context}: {error}"))
    }
}

/// What every command returns.
pub(crate) type Outcome = Result<(), Failure>;

/// Prints a failure to standard error and turns it into the exit code.
pub(crate) fn code(outcome: Outcome) -> ExitCode {
    let (text, code) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Running(text)) => (text, 1),
        Err(Failure::Usage(text)) => (text, 2),
        Err(Failure::Invalid(text)) => (text, 3),
    };
    eprintln!("error: {text}");
    ExitCode::from(code)
}
