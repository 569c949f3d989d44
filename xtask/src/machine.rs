//! The machine that a command runs on: its programs, and whether it is CI's.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_owned()
}

/// The build folder.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Whether this is CI, where nothing may be skipped.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// Whether a program can be found by its name.
pub(crate) fn has(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|paths| std::env::split_paths(&paths).any(|folder| folder.join(program).is_file()))
}

/// How busy it was in the last minute: how many processes ran or wanted to.
pub(crate) fn load_average() -> String {
    let averages = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    averages.split_whitespace().next().unwrap_or("unknown").to_owned()
}

/// What its processor calls itself.
pub(crate) fn processor() -> String {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| "an unknown processor".to_owned(), |(_, name)| name.trim().to_owned())
}

/// A command that starts in the workspace's root.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Cargo, the one that runs us.
pub(crate) fn cargo() -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command to its end with its output shown; an exit code other than 0 is a failure.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let line = shown(command);
    println!("$ {line}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Failed(format!("`{line}`: {status}"))),
        Err(error) => Err(Failure::Failed(format!("`{line}` did not start: {error}"))),
    }
}

/// Runs a command to its end and returns what it printed to standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let line = shown(command);
    match command.output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => {
            Err(Failure::Failed(format!("`{line}`: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr))))
        }
        Err(error) => Err(Failure::Failed(format!("`{line}` did not start: {error}"))),
    }
}

/// The command as one would type it in the workspace's root.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let root = root();
    let program = if program.starts_with(&root) {
        program.strip_prefix(&root).unwrap_or(program).to_string_lossy().into_owned()
    } else {
        program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
    };
    let mut line = program;
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}
