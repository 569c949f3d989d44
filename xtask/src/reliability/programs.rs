//! The test programs of the workspace, built once and kept apart, so that a change of the sources meanwhile changes
//! nothing of a run.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Results, note, said};
use crate::failure::Failure;
use crate::machine;

/// The fleet's, where shuttle decides which thread runs when.
const INTERLEAVED: [&str; 6] = ["--package", "isotherm-fleet", "--features", "shuttle", "--lib", "--tests"];

/// All of them, and the product's binary.
#[derive(Debug)]
pub(super) struct Programs {
    tests: Vec<Program>,
    /// What the tests through the front door start.
    pub(super) binary: PathBuf,
}

/// One test program.
#[derive(Debug)]
pub(super) struct Program {
    file: PathBuf,
    /// The folder of its package, which its files are relative to.
    folder: PathBuf,
}

impl Programs {
    /// Builds them, and the fleet's once more for shuttle; or takes those of which cargo's messages in a file tell.
    pub(super) fn built(messages: Option<&Path>) -> Result<Programs, Failure> {
        let kept = machine::target().join("reliability");
        let _ = fs::remove_dir_all(&kept);
        fs::create_dir_all(&kept).map_err(|error| Failure::file(&kept, &error))?;
        let everything = match messages {
            Some(file) => artifacts(&fs::read_to_string(file).map_err(|error| Failure::file(file, &error))?),
            None => [build(&["--workspace", "--lib", "--bins", "--tests"])?, build(&INTERLEAVED)?].concat(),
        };
        let is_product = |artifact: &&Value| {
            artifact["target"]["name"] == "isotherm"
                && artifact["profile"]["test"] == false
                && artifact["executable"].is_string()
        };
        let product = everything.iter().find(is_product);
        let product = product.ok_or_else(|| Failure::Failed("cargo built no isotherm".to_owned()))?;
        let binary = keep(product, &kept)?.file;
        let mut tests = Vec::new();
        for artifact in everything.iter().filter(|artifact| is_test(artifact)) {
            tests.push(keep(artifact, &kept)?);
        }
        Ok(Programs { tests, binary })
    }

    /// Runs those of these tests that each has. One that fails beside others has a second try alone: many have
    /// time-outs, and other work on the machine spends them.
    pub(super) fn run(&self, names: &[&String]) -> Result<Results, Failure> {
        let mut results = Results::new();
        for program in &self.tests {
            let mut own = Results::new();
            note(&mut own, &program.run(names, &[], &self.binary)?);
            let failed: Vec<String> =
                own.iter().filter(|(_, passed)| !**passed).map(|(name, _)| name.clone()).collect();
            if !failed.is_empty() {
                own.retain(|_, passed| *passed);
                let failed: Vec<&String> = failed.iter().collect();
                note(&mut own, &program.run(&failed, &["--test-threads=1"], &self.binary)?);
            }
            if program.is_of_front_door() {
                // Those that take minutes each.
                note(&mut own, &program.run(names, &["--test-threads=1", "--ignored"], &self.binary)?);
            }
            own.into_iter().for_each(|(name, passed)| *results.entry(name).or_insert(true) &= passed);
        }
        Ok(results)
    }
}

impl Program {
    fn run(&self, names: &[&String], more: &[&str], binary: &Path) -> Result<String, Failure> {
        let mut program = machine::command(&self.file);
        program.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder).env("ISOTHERM_BIN", binary);
        if self.is_of_front_door() && more.is_empty() {
            program.arg("--test-threads=1");
        }
        said(program.args(more).args(names))
    }

    fn is_of_front_door(&self) -> bool {
        self.folder == machine::root().join("tests")
    }
}

/// What cargo says that it built.
fn build(what: &[&str]) -> Result<Vec<Value>, Failure> {
    let mut cargo = machine::cargo();
    cargo.args(["build", "--locked", "--message-format=json-render-diagnostics"]).args(what);
    Ok(artifacts(&machine::output(&mut cargo)?))
}

fn artifacts(messages: &str) -> Vec<Value> {
    let lines = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["reason"] == "compiler-artifact").collect()
}

fn is_test(artifact: &Value) -> bool {
    artifact["profile"]["test"] == true && artifact["executable"].is_string()
}

/// Another name for a program, which stays when the next build puts a new one in its place.
fn keep(artifact: &Value, folder: &Path) -> Result<Program, Failure> {
    let path = |value: &Value| PathBuf::from(value.as_str().unwrap_or_default());
    let (built, manifest) = (path(&artifact["executable"]), path(&artifact["manifest_path"]));
    let file = folder.join(built.file_name().unwrap_or_default());
    fs::hard_link(&built, &file)
        .or_else(|_| fs::copy(&built, &file).map(drop))
        .map_err(|error| Failure::file(&file, &error))?;
    Ok(Program { file, folder: manifest.parent().unwrap_or(Path::new("")).to_owned() })
}
