//! The router that is measured.

use std::path::PathBuf;
use std::process::Command;

use crate::failure::Failure;
use crate::machine;

/// An `isotherm` binary.
#[derive(Debug)]
pub(crate) struct Binary(PathBuf);

impl Binary {
    /// This one, or the release build of the sources as they are.
    pub(crate) fn of(given: Option<PathBuf>) -> Result<Binary, Failure> {
        if let Some(path) = given {
            return Ok(Binary(path));
        }
        machine::run(machine::cargo().args(["build", "--release", "--locked", "--package", "isotherm"]))?;
        Ok(Binary(machine::target().join("release/isotherm")))
    }

    /// A command of it, without its arguments.
    pub(crate) fn command(&self) -> Command {
        machine::command(&self.0)
    }
}
