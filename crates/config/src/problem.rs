//! What is wrong with a configuration, and where: a flag, an environment variable, or a line and column of a file.

use std::fmt;
use std::path::PathBuf;

/// Everything that was found wrong; never empty.
///
/// Displayed as one line per problem, each beginning with its origin, as compilers do it:
/// `isotherm.yaml:3:9: listen: …`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    /// Every problem: first those of flags, then of the environment, then of files in the order of their lines.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it was written.
    pub origin: Origin,
    /// What is wrong and what would be right. Never holds a secret.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)
    }
}

/// Where a setting was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// On the command line, by this flag (`--port`).
    Flag(String),
    /// In an environment variable of this name.
    Environment(String),
    /// In a file: the configuration itself, or one that it names.
    File {
        /// The file's path, as it was given.
        path: PathBuf,
        /// Where in the file; `None` for the file as a whole.
        place: Option<Place>,
    },
    /// Nowhere: the setting is missing, or a default does not fit.
    Nowhere,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File { path, place: Some(place) } => write!(f, "{}:{place}", path.display()),
            Origin::File { path, place: None } => write!(f, "{}", path.display()),
            Origin::Environment(name) => write!(f, "environment variable {name}"),
            Origin::Flag(flag) => f.write_str(flag),
            Origin::Nowhere => f.write_str("configuration"),
        }
    }
}

/// A position in a file, counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Collects problems while a configuration is put together, so that all of them are told at once.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<Problem>,
}

impl Problems {
    pub(crate) fn add(&mut self, origin: Origin, message: impl Into<String>) {
        self.found.push(Problem { origin, message: message.into() });
    }

    /// The value of a result, or `None` after its error was noted.
    pub(crate) fn take<T, E: fmt::Display>(&mut self, origin: &Origin, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(origin.clone(), error.to_string())).ok()
    }

    /// An error when anything was found.
    pub(crate) fn into_result(mut self) -> Result<(), ConfigError> {
        self.found.sort_by(|one, other| one.origin.cmp(&other.origin));
        if self.found.is_empty() { Ok(()) } else { Err(ConfigError { problems: self.found }) }
    }

    /// Like [`Problems::into_result`], for a stage that needs the ones before to have gone well.
    pub(crate) fn check(&mut self) -> Result<(), ConfigError> {
        std::mem::take(self).into_result()
    }
}
