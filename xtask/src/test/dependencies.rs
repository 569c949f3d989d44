//! The step that checks what the build depends on, by cargo-deny.

use super::Outcome;
use crate::failure::Failure;
use crate::machine;

/// Installed when no cargo-deny is there.
const VERSION: &str = "0.20.2";

pub(crate) fn run() -> Outcome {
    check().into()
}

fn check() -> Result<(), Failure> {
    if !machine::has("cargo-deny") {
        println!("cargo-deny is not installed; cargo installs it once, which takes minutes");
        machine::run(machine::cargo().args(["install", "--locked", &format!("cargo-deny@{VERSION}")]))?;
    }
    machine::run(machine::cargo().args([
        "deny",
        "--locked",
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ]))?;
    if machine::output(machine::cargo().args(["deny", "fetch", "db"])).is_err() {
        println!("advisories: not checked, their database cannot be reached from here");
        return Ok(());
    }
    machine::run(machine::cargo().args(["deny", "--locked", "check", "advisories"]))
}
