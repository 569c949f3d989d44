//! The routers for language models that come as Python wheels, on their cache-aware policies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Place, Subject, free_port, log_of};
use crate::failure::Failure;
use crate::machine;
use crate::perf::process::Process;

/// LiteLLM serves nobody without a key; the load generator sends it to all.
const LITELLM_KEY: &str = "sk-perf-b7c1f0a2d95e4c83a6d4";

pub(super) fn vllm_router(place: &Place<'_>) -> Result<Subject, Failure> {
    let environment = install(&place.folder, "vllm-router==0.1.17")?;
    let command = machine::command(environment.join("bin/vllm-router"));
    cache_aware(place, "vllm-router", "0.1.17", "cache_aware", command)
}

pub(super) fn sglang_router(place: &Place<'_>) -> Result<Subject, Failure> {
    let environment = install(&place.folder, "sglang-router==0.3.2")?;
    let mut command = machine::command(environment.join("bin/python"));
    command.args(["-m", "sglang_router.launch_router"]);
    cache_aware(place, "sglang-router", "0.3.2", "cache_aware", command)
}

pub(super) fn smg(place: &Place<'_>) -> Result<Subject, Failure> {
    let environment = install(&place.folder, "smg==1.13.0")?;
    let mut command = machine::command(environment.join("bin/smg"));
    command.args(["launch", "--backend", "vllm"]);
    cache_aware(place, "smg", "1.13.0", "cache_aware", command)
}

/// The three have one ancestor, and its options.
fn cache_aware(
    place: &Place<'_>,
    name: &'static str,
    version: &str,
    tuning: &'static str,
    mut command: Command,
) -> Result<Subject, Failure> {
    let port = free_port()?;
    command.arg("--worker-urls").args(place.urls).args(["--policy", "cache_aware", "--host", "127.0.0.1", "--port"]);
    command.arg(port.to_string()).args(["--prometheus-port", &free_port()?.to_string()]);
    command.args(["--log-level", "error"]);
    Ok(Subject {
        name,
        version: version.to_owned(),
        tuning,
        authority: format!("127.0.0.1:{port}"),
        process: Process::start(command, &log_of(name))?,
    })
}

/// A worker for each core, as its guide for production advises, and nothing that it would write.
pub(super) fn litellm(place: &Place<'_>) -> Result<Subject, Failure> {
    let environment = install(&place.folder, "litellm[proxy]==1.108.7")?;
    let port = free_port()?;
    let model = |url: &String| {
        format!(
            "  - model_name: m\n    litellm_params:\n      model: hosted_vllm/m\n      api_base: {url}/v1\n      api_key: none\n"
        )
    };
    let models: String = place.urls.iter().map(model).collect();
    let configuration = format!("model_list:\n{models}litellm_settings:\n  telemetry: false\n  set_verbose: false\n");
    let file = place.folder.join("litellm.yaml");
    fs::write(&file, configuration).map_err(|error| Failure::file(&file, &error))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = machine::command(environment.join("bin/litellm"));
    command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--num_workers", &cores.to_string()]);
    command.arg("--config").arg(file).env("LITELLM_MASTER_KEY", LITELLM_KEY).env("LITELLM_LOG", "ERROR");
    // Its table of prices is in the package; it need not be fetched.
    command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    Ok(Subject {
        name: "litellm",
        version: "1.108.7".to_owned(),
        tuning: "a worker per core, no log",
        authority: format!("127.0.0.1:{port}"),
        process: Process::start(command, &log_of("litellm"))?,
    })
}

/// Whether a package has an environment already.
pub(super) fn is_installed(folder: &Path, name: &str) -> bool {
    folder.join("wheels").join(name).join("installed.txt").is_file()
}

/// An environment of its own for one package, made once.
fn install(folder: &Path, package: &str) -> Result<PathBuf, Failure> {
    let name: String = package.chars().take_while(|letter| !matches!(letter, '=' | '[')).collect();
    let environment = folder.join("wheels").join(name);
    let stamp = environment.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == package) {
        return Ok(environment);
    }
    machine::run(machine::command("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package];
    machine::run(machine::command(environment.join("bin/python")).args(pip))?;
    fs::write(&stamp, package).map_err(|error| Failure::file(&stamp, &error))?;
    Ok(environment)
}
