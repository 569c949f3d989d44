//! The table of `docs/simulator.md`, written anew between two marks.

use std::fs;

use super::FRESH_SEEDS;
use super::verdict::{Count, Row};
use crate::failure::Failure;
use crate::machine;

const FILE: &str = "docs/simulator.md";
const BEGIN: &str = "<!-- cargo xtask compare: begin -->";
const END: &str = "<!-- cargo xtask compare: end -->";

/// Replaces what stands between the marks.
pub(crate) fn write(rows: &[Row], seeds: u64) -> Result<(), Failure> {
    let file = machine::root().join(FILE);
    let text = fs::read_to_string(&file).map_err(|error| Failure::file(&file, &error))?;
    let marks = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) =
        marks.ok_or_else(|| Failure::Failed(format!("{FILE} has lost its marks {BEGIN} and {END}")))?;
    let date = machine::output(machine::command("date").args(["--utc", "+%Y-%m-%d"]))?;
    let table = table(rows);
    let written = format!(
        "{before}{BEGIN}\n{} {seeds} paired seeds, {}; where a figure was worse, {FRESH_SEEDS} fresh ones decided.\n\n{table}\n{}{END}{after}",
        Count::of(rows),
        date.trim(),
        worse(rows)
    );
    fs::write(&file, written).map_err(|error| Failure::file(&file, &error))?;
    println!("written: {}", file.display());
    Ok(())
}

fn table(rows: &[Row]) -> String {
    let mut table = String::from(
        "| scenario | hit rate | P50 | P90 | P99 | requests/s | against PREFIX_AWARE at its best |\n|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let [hit_rate, p50, p90, p99, throughput] = row.own;
        let times = [p50, p90, p99].map(milliseconds).join(" | ");
        let against = row.against.first().map_or_else(String::new, |against| {
            let [hits, p50, p90, p99, throughput] = against.differs.map(signed);
            format!("{hits} points, P50 {p50}, P90 {p90}, P99 {p99}, throughput {throughput} %")
        });
        table += &format!(
            "| `{}` | {:.1} % | {times} | {throughput:.2} | `@{}`: {against} |\n",
            row.scenario,
            100.0 * hit_rate,
            row.best
        );
    }
    table
}

/// What is worse, scenario by scenario.
fn worse(rows: &[Row]) -> String {
    let worse = rows.iter().map(|row| (&row.scenario, row.worse())).filter(|(_, worse)| !worse.is_empty());
    worse.map(|(scenario, worse)| format!("Worse in `{scenario}`: {}.\n\n", worse.join("; "))).collect()
}

fn milliseconds(value: f64) -> String {
    if value < 100.0 { format!("{value:.1} ms") } else { format!("{value:.0} ms") }
}

fn signed(value: f64) -> String {
    format!("{value:+.1}").replace('-', "−")
}
