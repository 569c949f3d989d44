//! `isotherm explain`: why a request goes where it goes.

use clap::Args;

use crate::exit::Outcome;

/// Explain where a request goes and why
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: Arguments) -> Outcome {
    Ok(())
}
