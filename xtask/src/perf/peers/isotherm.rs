//! Isotherm as it is after installing, under each of its two strategies that look at prompts.

use super::{Place, Subject};
use crate::failure::Failure;
use crate::machine;
use crate::perf::process::Process;

pub(super) fn prefix_aware(place: &Place<'_>) -> Result<Subject, Failure> {
    start(place, "isotherm", "PREFIX_AWARE", "defaults, PREFIX_AWARE")
}

pub(super) fn adaptive(place: &Place<'_>) -> Result<Subject, Failure> {
    start(place, "isotherm-adaptive", "ADAPTIVE", "defaults, ADAPTIVE")
}

fn start(place: &Place<'_>, name: &'static str, strategy: &str, tuning: &'static str) -> Result<Subject, Failure> {
    let mut command = machine::command(place.isotherm);
    command.args(["serve", "--port", "0", "--admin-port", "0", "--strategy", strategy]);
    for (ordinal, url) in place.urls.iter().enumerate() {
        command.args(["--instance", &format!("engine-{ordinal}={url}")]);
    }
    let (process, lines) = Process::start_until(command, "ready http://")?;
    let ready = lines.last().map(|line| line.trim_start_matches("ready http://").trim().to_owned());
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Ok(Subject { name, version, tuning, authority: ready.unwrap_or_default(), process })
}
