//! Why a command did not end well.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// The two ways to fail: exit code 2 for what the caller typed, 1 for all else.
#[derive(Debug)]
pub(crate) enum Failure {
    Usage(String),
    Failed(String),
}

impl Failure {
    /// A file or folder that could not be read or written.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Failure {
        Failure::Failed(format!("{}: {error}", path.display()))
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Failed(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) | Failure::Failed(message) => formatter.write_str(message),
        }
    }
}
