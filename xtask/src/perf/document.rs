//! The page, its JSON and its picture in `docs/benchmarks/`, written whole by each run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use isotherm_report::{Align, Table};
use serde_json::{Value, json};

use super::figures::{Figures, Memory, Named, Results};
use super::peers::Skipped;
use super::plan::{Case, LONG_SECONDS, Plan};
use super::{ahead, chart, targets};
use crate::failure::Failure;
use crate::machine;

const BEGINNING: &str = "\
# What the router costs, beside others

Written by `cargo xtask perf`; [decisions.md](decisions.md) says what was decided by such figures. Every case is measured with every router one right after the other, in rounds that begin
with another router each; figures are medians of the rounds. Two engines answer at once (a streamed answer with a write
for each token), users ask again as soon as they have an answer, each on a connection that is kept. Engines, load
generator and routers are processes of their own and share the machine's cores, so requests a second are those of all
three together; the last two columns tell how much of it engines and load generator took. \"Added\" is the time to the
first byte of the body less that of the direct way in the same round. CPU time is that of the router's processes, as the
kernel counts it; requests a second and core is what one core would serve if it did nothing else. Prompts are 16 texts
with a question each that no other has. Memory is what is resident before the first request, at most, and ten seconds
after the last answer. A dash stands where no request ended whole within the time that counts: all
failed, as the remark says, or so many long ones at once take longer than a measurement.
";

/// A run with all that is told of it.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) command: String,
    pub(crate) plan: Plan,
    /// How Isotherm was built, and at which commit.
    pub(crate) origin: String,
    /// The load average before the start.
    pub(crate) busy: String,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) results: Results,
}

/// Writes all three.
pub(crate) fn write(folder: &Path, page: &Page) -> Result<(), Failure> {
    let date = machine::output(machine::command("date").args(["--utc", "+%Y-%m-%d %H:%M UTC"]))?;
    let text = text(page, date.trim());
    println!("\n{text}");
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
    let json = format!("{:#}\n", as_json(page, date.trim()));
    let files =
        [("README.md", text), ("data-plane.json", json), ("data-plane.svg", chart::draw(&page.results, &page.plan))];
    for (name, content) in files {
        let file = folder.join(name);
        fs::write(&file, content).map_err(|error| Failure::file(&file, &error))?;
        println!("written: {}", file.display());
    }
    Ok(())
}

fn text(page: &Page, date: &str) -> String {
    let Page { command, plan, origin, busy, results, .. } = page;
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut text = BEGINNING.to_owned();
    // Writing into a String cannot fail.
    let _ = writeln!(
        text,
        "\nMeasured on {date} by `cargo xtask {command}`, Isotherm {origin}; {cores} cores of {}, load average \
         {busy} before the start{}; {} rounds ({} where no target holds) of {} s a measurement ({} s where a request \
         may take a second), of which the first fifth does not count.\n\n![Added time and requests a second](data-plane.svg)\n",
        machine::processor(),
        if is_busy(busy) {
            " (**the machine was busy with other things: only the order of the figures tells**)"
        } else {
            ""
        },
        plan.rounds,
        plan.rounds.div_ceil(3),
        plan.seconds,
        plan.seconds.max(LONG_SECONDS)
    );
    let _ = writeln!(text, "## Measured\n\n```text\n{}```\n", names(&results.names));
    for (name, why) in &page.skipped {
        let _ = writeln!(text, "Skipped: {name}: {why}\n");
    }
    if let Some(table) = targets::table(results, plan) {
        let _ = writeln!(text, "## Targets\n\n```text\n{table}```\n");
    }
    if let Some(table) = ahead::table(results, plan) {
        let _ = writeln!(text, "## Beside routers for language models\n\n```text\n{table}```\n");
    }
    for case in &plan.cases {
        let title = format!("{}, {} at once", case.shape(), case.connections);
        let _ = writeln!(text, "## {title}\n\n```text\n{}```\n", figures(results, *case));
    }
    text
}

/// More than a core's worth of other work.
fn is_busy(load_average: &str) -> bool {
    load_average.parse::<f64>().is_ok_and(|load| load > 1.0)
}

fn names(names: &[Named]) -> Table {
    let mut table = Table::new([Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Left]);
    table.row(["", "version", "MiB idle", "at most", "after", "set up"]);
    for named in names {
        let [idle, peak, after] = named.memory.map_or_else(Default::default, |Memory { idle, peak, after }| {
            [idle, peak, after].map(|mebibytes| format!("{mebibytes:.0}"))
        });
        table.row([named.name.clone(), named.version.clone(), idle, peak, after, named.tuning.clone()]);
    }
    table
}

fn figures(results: &Results, case: Case) -> Table {
    let mut table = Table::new([
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Left,
    ]);
    table.row(["", "first byte", "µs", "added", "µs", "requests", "CPU s of", "requests/s", "cores:", "cores:", ""]);
    table.row(["", "p50", "p99", "p50", "p99", "/s", "1,000", "a core", "load", "engines", ""]);
    let measured = |(index, _): &(usize, &Named)| results.rounds(*index, case) > 0;
    for (index, named) in results.names.iter().enumerate().filter(measured) {
        let Figures { sample, added_p50, added_p99, failed, failure, reconnects } = results.of(index, case);
        let of_router = |text: String| if index == 0 { String::new() } else { text };
        let mut row = vec![named.name.clone()];
        row.extend([sample.first_byte_p50, sample.first_byte_p99].map(|value| or_dash(value, 0)));
        row.extend([added_p50, added_p99].map(|value| of_router(or_dash(value, 0))));
        row.push(or_dash(sample.per_second, 0));
        row.push(of_router(or_dash(sample.cpu_us / 1e3, 3)));
        row.push(of_router(or_dash(1e6 / sample.cpu_us, 0)));
        row.extend([sample.load_cores, sample.engine_cores].map(|value| or_dash(value, 2)));
        row.push(remarks(failed, failure, reconnects, case, results.rounds(index, case)));
        table.row(row);
    }
    table
}

/// A figure with so many decimals; a dash where there is none: the median of nothing is NaN, and so is the processor time
/// of a request where none ended; the rate of a core is infinite then.
fn or_dash(figure: f64, decimals: usize) -> String {
    if figure.is_finite() { format!("{figure:.decimals$}") } else { "–".to_owned() }
}

/// What was not as it should be.
fn remarks(failed: u64, failure: Option<String>, reconnects: u64, case: Case, rounds: usize) -> String {
    let mut remarks = Vec::new();
    if failed > 0 {
        let why: String = failure.unwrap_or_default().chars().take(80).collect();
        remarks.push(format!("{failed} failed: {why}"));
    }
    // Each connection is opened once.
    let again = reconnects.saturating_sub(u64::from(case.connections) * rounds as u64);
    if again > 0 {
        remarks.push(format!("{again} connections were closed and opened again"));
    }
    remarks.join("; ")
}

fn as_json(page: &Page, date: &str) -> Value {
    let Page { command, plan, origin, busy, skipped, results } = page;
    let cases = plan.cases.iter().map(|case| {
        let measured = |(index, _): &(usize, &Named)| results.rounds(*index, *case) > 0;
        let of = results.names.iter().enumerate().filter(measured).map(|(index, named)| {
            let Figures { sample, added_p50, added_p99, failed, reconnects, .. } = results.of(index, *case);
            let added = (index > 0).then(|| json!({"p50": round(added_p50), "p99": round(added_p99)}));
            let figures = json!({
                "first_byte_us": {"p50": round(sample.first_byte_p50), "p99": round(sample.first_byte_p99)},
                "added_first_byte_us": added,
                "requests_per_second": round(sample.per_second),
                "cpu_seconds_per_1000_requests": (index > 0).then(|| round(sample.cpu_us * 1e3) / 1e6),
                "load_generator_cores": round(sample.load_cores * 1e2) / 1e2,
                "engine_cores": round(sample.engine_cores * 1e2) / 1e2,
                "failed": failed,
                "connections_opened": reconnects,
            });
            (named.name.clone(), figures)
        });
        json!({
            "prompt_bytes": case.prompt_bytes,
            "streamed_tokens": case.tokens,
            "concurrency": case.connections,
            "figures": of.collect::<serde_json::Map<_, _>>(),
        })
    });
    let subjects = results.names.iter().skip(1).map(|named| {
        let Memory { idle, peak, after } = named.memory.unwrap_or_default();
        let Named { name, version, tuning, .. } = named;
        json!({
            "name": name,
            "version": version,
            "set_up": tuning,
            "mib_idle": round(idle),
            "mib_peak": round(peak),
            "mib_after": round(after),
        })
    });
    json!({
        "date": date,
        "command": format!("cargo xtask {command}"),
        "isotherm": origin,
        "processor": machine::processor(),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "load_average_before": busy.parse::<f64>().ok(),
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        "subjects": subjects.collect::<Vec<_>>(),
        "skipped": skipped.iter().map(|(name, why)| json!({"name": name, "why": why})).collect::<Vec<_>>(),
        "cases": cases.collect::<Vec<_>>(),
    })
}

/// To one decimal.
fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
