//! The step that runs real clients against the built binary: it makes its own environments of Python and Node.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Outcome;
use crate::failure::Failure;
use crate::machine;

pub(crate) fn run() -> Outcome {
    if !machine::has("python3") {
        return Outcome::Skipped("python3 is not installed".to_owned());
    }
    match pytest().and_then(|mut pytest| machine::run(&mut pytest)) {
        Ok(()) => Outcome::Passed,
        Err(failure) => Outcome::Failed(failure.to_string()),
    }
}

/// The command that runs all of them.
pub(crate) fn pytest() -> Result<Command, Failure> {
    let (python, node_modules) = (python_environment()?, node_modules()?);
    let mut pytest = machine::command(&python);
    pytest.args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "tests/clients"]);
    pytest.env("ISOTHERM_BIN", machine::target().join("debug/isotherm"));
    pytest.env("PYTHONDONTWRITEBYTECODE", "1");
    if let Some(modules) = node_modules {
        pytest.env("NODE_PATH", modules);
    }
    if let Some(programs) = of_debian("prometheus", ["usr/bin/prometheus", "usr/bin/promtool"]) {
        let [prometheus, promtool] = programs;
        pytest.env("PROMETHEUS", prometheus).env("PROMTOOL", promtool);
    }
    if let Some(chromium) = chromium() {
        pytest.env("CHROMIUM", chromium);
    }
    if let Some([nginx]) = of_debian("nginx", ["usr/sbin/nginx"]) {
        pytest.env("NGINX", nginx);
    }
    Ok(pytest)
}

/// The environment's Python, with the pinned packages. Made anew when the list of packages changes.
fn python_environment() -> Result<PathBuf, Failure> {
    let folder = machine::target().join("clients-python");
    let python = folder.join("bin/python");
    let list = machine::root().join("tests/clients/requirements.txt");
    once(&folder, &list, || {
        machine::run(machine::command("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"];
        machine::run(machine::command(&python).args(pip).arg(&list))
    })?;
    Ok(python)
}

/// The folder of the pinned packages for Node, where there is Node; without it, the tests that need it say so.
fn node_modules() -> Result<Option<PathBuf>, Failure> {
    if !machine::has("node") || !machine::has("npm") {
        return Ok(None);
    }
    let folder = machine::target().join("clients-node");
    let source = machine::root().join("tests/clients/node");
    once(&folder, &source.join("package-lock.json"), || {
        fs::create_dir_all(&folder).map_err(|error| Failure::file(&folder, &error))?;
        for name in ["package.json", "package-lock.json"] {
            fs::copy(source.join(name), folder.join(name))
                .map_err(|error| Failure::file(&source.join(name), &error))?;
        }
        let ci = ["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"];
        machine::run(machine::command("npm").current_dir(&folder).args(ci))
    })?;
    Ok(Some(folder.join("node_modules")))
}

/// Installs into a folder, unless what this list says is there already.
fn once(folder: &Path, list: &Path, install: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    let wanted = fs::read_to_string(list).map_err(|error| Failure::file(list, &error))?;
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    install()?;
    fs::write(&stamp, wanted).map_err(|error| Failure::file(&stamp, &error))
}

/// Programs from the path; in CI on Debian, from their package unpacked in the build folder.
fn of_debian<const N: usize>(package: &str, programs: [&str; N]) -> Option<[PathBuf; N]> {
    let names = programs.map(|program| program.rsplit('/').next().unwrap_or(program));
    if names.iter().all(|name| machine::has(name)) {
        return Some(names.map(PathBuf::from));
    }
    let folder = machine::target().join(package);
    let unpacked = programs.map(|program| folder.join(program));
    let is_there = || unpacked.iter().all(|program| program.is_file());
    if !is_there()
        && machine::is_ci()
        && machine::has("apt-get")
        && let Err(failure) = unpack(package, &folder)
    {
        println!("{package}: {failure}");
    }
    is_there().then_some(unpacked)
}

/// The browser from the path; in CI, where this runs as root on Debian, installed with what it needs.
fn chromium() -> Option<PathBuf> {
    if !machine::has("chromium") && machine::is_ci() && machine::has("apt-get") {
        let apt = |arguments: &[&str]| {
            let mut command = machine::command("apt-get");
            machine::run(command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments))
        };
        let install = ["--quiet", "--yes", "--no-install-recommends", "install", "chromium"];
        let installed = apt(&install).or_else(|_| apt(&["--quiet", "update"]).and_then(|()| apt(&install)));
        if let Err(failure) = installed {
            println!("chromium: {failure}");
        }
    }
    machine::has("chromium").then(|| PathBuf::from("chromium"))
}

/// Unpacks the package instead of installing it: nothing else of it is wanted, least of all its service.
fn unpack(package: &str, folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
    let download = || machine::run(machine::command("apt-get").current_dir(folder).args(["download", package]));
    if download().is_err() {
        machine::run(machine::command("apt-get").args(["--quiet", "update"]))?;
        download()?;
    }
    let unpack =
        format!("for package in {package}_*.deb; do dpkg-deb --extract \"$package\" . && rm \"$package\"; done");
    machine::run(machine::command("sh").current_dir(folder).args(["-ec", &unpack]))
}
