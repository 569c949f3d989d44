//! A study as text: strategies in rows, so that any number of them fits a terminal.

use super::Study;
use crate::comparison::wrapped;
use crate::measures::{Latency, Measures};
use crate::table::{Align, Table};
use crate::{Change, StrategySummary};

/// The study as aligned tables: figures, work and cost, change against the baseline; then what to know about them.
pub fn text(study: &Study) -> String {
    let strategies = &study.report.strategies;
    let mut text = table(&FIGURES, strategies, |summary| summary.measures, bound_row(study));
    text.push('\n');
    text.push_str(&table(&WORK, strategies, |summary| summary.measures, None));
    let changes: Vec<&StrategySummary> = strategies.iter().filter(|summary| summary.change.is_some()).collect();
    if !changes.is_empty() {
        text.push_str(&format!("\nChange against {}, ± half the width of its 95 % interval:\n", study.report.baseline));
        text.push_str(&change_table(&changes));
    }
    text.push('\n');
    notes(study).iter().for_each(|note| text.push_str(&wrapped(note)));
    text
}

/// A column of a table.
pub(super) struct Column {
    pub(super) heading: &'static str,
    pub(super) value: fn(&Measures<f64>) -> Option<f64>,
    pub(super) unit: Unit,
}

/// How a value is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Three significant digits, or whole numbers above 100.
    Number,
    /// A share of 1, as a percentage.
    Percent,
}

const fn column(heading: &'static str, unit: Unit, value: fn(&Measures<f64>) -> Option<f64>) -> Column {
    Column { heading, value, unit }
}

pub(super) const FIGURES: [Column; 8] = [
    column("TTFT P50 ms", Unit::Number, |m| ttft(m, |ttft| ttft.p50)),
    column("P90", Unit::Number, |m| ttft(m, |ttft| ttft.p90)),
    column("P95", Unit::Number, |m| ttft(m, |ttft| ttft.p95)),
    column("P99", Unit::Number, |m| ttft(m, |ttft| ttft.p99)),
    column("Hit rate", Unit::Percent, |m| m.hit_rate),
    column("Requests/s", Unit::Number, |m| m.requests_per_second),
    column("Goodput/s", Unit::Number, |m| m.goodput_per_second),
    column("Spills", Unit::Percent, |m| m.spill_rate),
];

pub(super) const WORK: [Column; 7] = [
    column("Output tok/s", Unit::Number, |m| m.output_tokens_per_second),
    column("Evicted/s", Unit::Number, |m| m.evicted_blocks_per_second),
    column("GPU busy", Unit::Percent, |m| m.gpu_utilisation),
    column("Least share", Unit::Percent, |m| m.instance_share.map(|share| share.min)),
    column("Most", Unit::Percent, |m| m.instance_share.map(|share| share.max)),
    column("GPU s/Mtok", Unit::Number, |m| m.gpu_seconds_per_million_tokens),
    column("Cost/Mtok", Unit::Number, |m| m.cost_per_million_tokens),
];

/// The figures whose change is told.
pub(super) const CHANGES: [(usize, &str); 5] =
    [(0, "TTFT P50"), (1, "P90"), (3, "P99"), (4, "Hit rate"), (5, "Requests/s")];

fn ttft(measures: &Measures<f64>, figure: fn(&Latency<f64>) -> f64) -> Option<f64> {
    measures.ttft_ms.as_ref().map(figure)
}

/// The columns of which at least one strategy knows the value.
pub(super) fn known<'c>(columns: &'c [Column], strategies: &[StrategySummary]) -> Vec<&'c Column> {
    let is_known = |column: &&Column| strategies.iter().any(|summary| (column.value)(&summary.measures).is_some());
    columns.iter().filter(is_known).collect()
}

impl Unit {
    pub(super) fn show(self, value: Option<f64>) -> String {
        match (self, value) {
            (_, None) => "-".to_owned(),
            (Unit::Percent, Some(value)) => format!("{:.1}%", 100.0 * value),
            (Unit::Number, Some(value)) if value >= 100.0 => format!("{value:.0}"),
            (Unit::Number, Some(value)) if value >= 10.0 => format!("{value:.1}"),
            (Unit::Number, Some(value)) => format!("{value:.2}"),
        }
    }
}

fn table(
    columns: &[Column],
    strategies: &[StrategySummary],
    measures: fn(&StrategySummary) -> Measures<f64>,
    last: Option<(String, Vec<Option<f64>>)>,
) -> String {
    let known = known(columns, strategies);
    let mut table = Table::new(std::iter::once(Align::Left).chain(known.iter().map(|_| Align::Right)));
    table.row(std::iter::once("").chain(known.iter().map(|column| column.heading)));
    for summary in strategies {
        let measures = measures(summary);
        let values = known.iter().map(|column| column.unit.show((column.value)(&measures)));
        table.row(std::iter::once(summary.strategy.clone()).chain(values));
    }
    if let Some((name, values)) = last {
        let values = known
            .iter()
            .zip(values)
            .map(|(column, value)| value.map_or_else(String::new, |value| column.unit.show(Some(value))));
        table.row(std::iter::once(name).chain(values));
    }
    table.to_string()
}

/// The bound in the columns of [`FIGURES`] that it has.
pub(super) fn bound_values(study: &Study) -> Option<Vec<Option<f64>>> {
    let bound = study.bound?;
    let ttft = bound.ttft_ms;
    Some(vec![Some(ttft.p50), Some(ttft.p90), Some(ttft.p95), Some(ttft.p99), Some(bound.hit_rate)])
}

fn bound_row(study: &Study) -> Option<(String, Vec<Option<f64>>)> {
    Some(("(clairvoyant bound)".to_owned(), bound_values(study)?))
}

fn change_table(strategies: &[&StrategySummary]) -> String {
    let mut table = Table::new(std::iter::once(Align::Left).chain(CHANGES.map(|_| Align::Right)));
    table.row(std::iter::once("").chain(CHANGES.map(|(_, heading)| heading)));
    for summary in strategies {
        let Some(change) = &summary.change else { continue };
        let cells = CHANGES.map(|(column, _)| change_cell(change, &FIGURES[column]).unwrap_or_else(|| "-".to_owned()));
        table.row(std::iter::once(summary.strategy.clone()).chain(cells));
    }
    table.to_string()
}

/// `-78.6% ±0.1`, or `+53.0 pt ±0.2` for shares.
pub(super) fn change_cell(change: &Change, column: &Column) -> Option<String> {
    let value = 100.0 * (column.value)(&change.measures)?;
    let bound = |side: usize| {
        let side = Measures::combined(&[change.ci], &|_, values: Vec<[f64; 2]>| values.first().map(|pair| pair[side]));
        (column.value)(&side).map(|bound| 100.0 * bound)
    };
    let half = (bound(1)? - bound(0)?) / 2.0;
    let unit = if column.unit == Unit::Percent { " pt" } else { "%" };
    Some(format!("{value:+.1}{unit} ±{half:.1}"))
}

/// How the figures came about, and what was fitted: a sentence or two each.
pub(super) fn notes(study: &Study) -> Vec<String> {
    let minutes = |seconds: f64| format!("{:.1} min", seconds / 60.0);
    let instances =
        study.report.instances.map_or_else(String::new, |count| format!(", {count} instances at the start"));
    let users = if study.report.users > 0 { format!(", {} users", study.report.users) } else { String::new() };
    let seeds = match study.seeds {
        1 => format!("Seed {}", study.report.seed),
        seeds => format!("{seeds} seeds from {} on, each", study.report.seed),
    };
    let mut notes = vec![
        format!("{}: {}.", study.report.scenario, study.title),
        format!(
            "{seeds} {} of engine time, {} of it warm-up{instances}{users}.",
            minutes(study.duration_seconds),
            minutes(study.warm_up_seconds),
        ),
    ];
    let objectives = [("TTFT", study.objectives.ttft_ms), ("token gap", study.objectives.token_gap_ms)];
    let objectives: Vec<String> =
        objectives.into_iter().filter_map(|(what, most)| Some(format!("{what} up to {:.0} ms", most?))).collect();
    if !objectives.is_empty() {
        notes.push(format!("Goodput counts answers with {}.", objectives.join(" and ")));
    }
    for summary in study.report.strategies.iter().filter(|summary| summary.errors > 0) {
        let StrategySummary { strategy, requests, errors, .. } = summary;
        notes.push(format!("{strategy}: {errors} of {requests} requests failed."));
    }
    for (what, sentences) in [("Fitted", &study.fitted), ("Predicted", &study.predicted)] {
        notes.extend(sentences.iter().map(|sentence| format!("{what}: {sentence}.")));
    }
    notes.extend(study.report.invalid.iter().map(|sentence| format!("INVALID: {sentence}")));
    notes
}
