//! The step that runs real clients against the built binary: it makes its own Python environment.

use std::fs;
use std::path::{Path, PathBuf};

use super::Outcome;
use crate::failure::Failure;
use crate::machine;

pub(crate) fn run() -> Outcome {
    if !machine::has("python3") {
        return Outcome::Skipped("python3 is not installed".to_owned());
    }
    match environment() {
        Ok(python) => tests(&python).into(),
        Err(failure) => Outcome::Failed(failure.to_string()),
    }
}

fn tests(python: &Path) -> Result<(), Failure> {
    let mut pytest = machine::command(python);
    pytest.args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "tests/clients"]);
    pytest.env("ISOTHERM_BIN", machine::target().join("debug/isotherm"));
    pytest.env("PYTHONDONTWRITEBYTECODE", "1");
    if let Some(promtool) = promtool() {
        pytest.env("PROMTOOL", promtool);
    }
    machine::run(&mut pytest)
}

/// The environment's Python, with the pinned packages. Made anew when the list of packages changes.
fn environment() -> Result<PathBuf, Failure> {
    let folder = machine::target().join("clients-python");
    let python = folder.join("bin/python");
    let list = machine::root().join("tests/clients/requirements.txt");
    let wanted = fs::read_to_string(&list).map_err(|error| Failure::file(&list, &error))?;
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) && python.is_file() {
        return Ok(python);
    }
    machine::run(machine::command("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    machine::run(machine::command(&python).args(pip).arg(&list))?;
    fs::write(&stamp, wanted).map_err(|error| Failure::file(&stamp, &error))?;
    Ok(python)
}

/// promtool from the path; in CI on Debian, from its package unpacked in the build folder.
fn promtool() -> Option<PathBuf> {
    if machine::has("promtool") {
        return Some("promtool".into());
    }
    let folder = machine::target().join("prometheus");
    let unpacked = folder.join("usr/bin/promtool");
    if unpacked.is_file() {
        return Some(unpacked);
    }
    if !machine::is_ci() || !machine::has("apt-get") {
        return None;
    }
    match unpack_promtool(&folder) {
        Ok(()) => Some(unpacked),
        Err(failure) => {
            println!("promtool: {failure}");
            None
        }
    }
}

/// Unpacks the package instead of installing it: nothing else of it is wanted, least of all its service.
fn unpack_promtool(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
    let download = || machine::run(machine::command("apt-get").current_dir(folder).args(["download", "prometheus"]));
    if download().is_err() {
        machine::run(machine::command("apt-get").args(["--quiet", "update"]))?;
        download()?;
    }
    let unpack = "for package in prometheus_*.deb; do dpkg-deb --extract \"$package\" . && rm \"$package\"; done";
    machine::run(machine::command("sh").current_dir(folder).args(["-ec", unpack]))
}
