//! `cargo xtask perf --count`: instructions of the pieces of a request's way that run on the processor alone, counted by
//! callgrind and compared with those that are kept. Counts hardly depend on how busy the machine is, or how fast.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use isotherm_report::{Align, Table};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::machine;

/// The program's pieces.
const PIECES: [&str; 5] =
    ["extract-prefix", "extract-blocks", "decide-prefix-aware", "decide-adaptive", "relay-stream"];
/// Of two runs, one with so many more than the other, the difference counts: starting and preparing cancel out.
const FEW: u32 = 64;
const MANY: u32 = 576;
/// What differs by more than this part fails.
const ALLOWED: f64 = 0.05;
const KEPT: &str = "docs/benchmarks/instructions.json";

/// Instructions of each piece.
type Counts = BTreeMap<String, f64>;

/// Counts, and compares with what is kept. Another compiler makes other instructions: then it only tells.
pub(crate) fn check() -> Result<(), Failure> {
    let counts = count()?;
    let (kept, compiler) = read()?;
    let mut table = Table::new([Align::Left, Align::Right, Align::Right, Align::Right]);
    table.row(["instructions", "now", "kept", "change"]);
    let mut complaints = Vec::new();
    for (piece, &now) in &counts {
        let Some(&before) = kept.get(piece) else {
            complaints.push(format!("{piece} has no count that is kept"));
            continue;
        };
        let change = now / before - 1.0;
        table.row([piece.clone(), format!("{now:.0}"), format!("{before:.0}"), format!("{:+.1} %", change * 100.0)]);
        if change.abs() > ALLOWED {
            complaints.push(format!("{piece} takes {now:.0} instructions, {:+.1} % of {before:.0}", change * 100.0));
        }
    }
    println!("{table}");
    if compiler != self::compiler()? {
        println!(
            "{KEPT} was counted with {compiler}: not compared; `cargo xtask perf --count --save` keeps new counts"
        );
        return Ok(());
    }
    if complaints.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "{}\nIf that is what the change is worth, or it became faster: `cargo xtask perf --count --save`",
        complaints.join("\n")
    )))
}

/// Counts, and keeps the counts.
pub(crate) fn save() -> Result<(), Failure> {
    let counts = count()?;
    let file = kept();
    let page = json!({"compiler": compiler()?, "instructions": counts});
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
    }
    fs::write(&file, format!("{page:#}\n")).map_err(|error| Failure::file(&file, &error))?;
    println!("{counts:#?}\nwritten: {}", file.display());
    Ok(())
}

fn count() -> Result<Counts, Failure> {
    if !machine::has("valgrind") {
        return Err(Failure::Failed("valgrind, which counts instructions, is not installed".to_owned()));
    }
    let build = ["build", "--locked", "--profile", "dist", "--package", "isotherm-tests", "--bin", "hot_path"];
    machine::run(machine::cargo().args(build))?;
    let program = machine::target().join("dist/hot_path");
    let of_piece = |piece: &&str| {
        let (few, many) = (instructions(&program, piece, FEW)?, instructions(&program, piece, MANY)?);
        Ok(((*piece).to_owned(), ((many - few) / f64::from(MANY - FEW)).round()))
    };
    PIECES.iter().map(of_piece).collect()
}

fn instructions(program: &Path, piece: &str, times: u32) -> Result<f64, Failure> {
    let mut valgrind = machine::command("valgrind");
    valgrind
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([piece, &times.to_string()]);
    let output = valgrind.output().map_err(|error| Failure::Failed(format!("valgrind did not start: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    collected
        .filter(|_| output.status.success())
        .ok_or_else(|| Failure::Failed(format!("valgrind told no count:\n{said}")))
}

fn read() -> Result<(Counts, String), Failure> {
    let file = kept();
    let text = fs::read_to_string(&file).map_err(|error| Failure::file(&file, &error))?;
    let broken = |what: &str| Failure::Failed(format!("{}: {what}", file.display()));
    let page: Value = serde_json::from_str(&text).map_err(|error| broken(&error.to_string()))?;
    let compiler = page["compiler"].as_str().ok_or_else(|| broken("no compiler"))?.to_owned();
    let counts = page["instructions"].as_object().ok_or_else(|| broken("no instructions"))?;
    let counts = counts.iter().filter_map(|(piece, count)| Some((piece.clone(), count.as_f64()?)));
    Ok((counts.collect(), compiler))
}

fn kept() -> PathBuf {
    machine::root().join(KEPT)
}

fn compiler() -> Result<String, Failure> {
    let version = machine::output(machine::command("rustc").arg("--version"))?;
    Ok(format!("{} for {}", version.trim(), std::env::consts::ARCH))
}
