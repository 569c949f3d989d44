//! The page with the figures: `docs/real-engines.md`, written whole by each run.

use std::fmt::Write as _;
use std::fs;

use super::calibration;
use crate::failure::Failure;
use crate::machine;

const BEGINNING: &str = "\
# Two real vLLM replicas behind Isotherm

Written by `cargo xtask real-engines`. It installs vLLM 0.32 for CPUs, makes a Llama of 4 layers with random weights (so
its words mean nothing, but its work is real), starts two replicas with one thread each, and sends them the same
requests through the router under each strategy. Prompt tokens, cached tokens and times are the engines' and the
clients' own; caches are cold for each strategy, because each gets other words. Router, load and both engines share
the machine.
";

/// Writes the page: machine, date, and a table for each run.
pub(crate) fn write(tables: &[(&str, String)], busy: &str) -> Result<(), Failure> {
    let file = machine::root().join("docs/real-engines.md");
    let date = machine::output(machine::command("date").args(["--utc", "+%Y-%m-%d %H:%M UTC"]))?;
    let commit = machine::output(machine::command("git").args(["rev-parse", "--short", "HEAD"]));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut page = BEGINNING.to_owned();
    // Writing into a String cannot fail.
    let _ = writeln!(
        page,
        "\nMeasured on {} at commit {}, {cores} cores of {}, load average {busy} before the start (on a busy machine \
         times are longer; hit rates are not touched).",
        date.trim(),
        commit.as_deref().unwrap_or("unknown").trim(),
        machine::processor()
    );
    for (title, table) in tables {
        let _ = writeln!(page, "\n## {title}\n\n```text\n{}\n```", table.trim_end());
        if *title == calibration::TITLE {
            let _ = writeln!(page, "\n![The same as a picture]({})", calibration::PICTURE);
        }
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
    }
    fs::write(&file, page).map_err(|error| Failure::file(&file, &error))?;
    println!("written: {}", file.display());
    Ok(())
}
