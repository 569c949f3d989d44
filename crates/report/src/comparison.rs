//! A report as text: figures in rows, strategies in columns, each with its change against the baseline.

use crate::measures::Latency;
use crate::table::{Align, Table};
use crate::{Report, StrategySummary};

/// Names are broken at underscores into lines of at most this width, so that four strategies fit 100 columns.
const NAME_WIDTH: usize = 12;
/// Sentences are broken into lines of at most this width.
const LINE_WIDTH: usize = 100;

/// The report as an aligned table, followed by what forbids to trust it, if anything does. Every line ends with a line
/// feed.
pub fn text(report: &Report) -> String {
    let changed = |summary: &StrategySummary| summary.strategy != report.baseline;
    let mut columns = vec![Align::Left];
    for summary in &report.strategies {
        columns.extend(std::iter::repeat_n(Align::Right, 1 + usize::from(changed(summary))));
    }
    let mut table = Table::new(columns);
    let names: Vec<Vec<String>> = report.strategies.iter().map(|summary| name_lines(&summary.strategy)).collect();
    let height = names.iter().map(Vec::len).max().unwrap_or(0);
    for line in (1..=height).rev() {
        let mut cells = vec![String::new()];
        for (summary, name) in report.strategies.iter().zip(&names) {
            cells.push(name.len().checked_sub(line).map(|at| name[at].clone()).unwrap_or_default());
            if changed(summary) {
                cells.push(if line == 1 { "change".to_owned() } else { String::new() });
            }
        }
        table.row(cells);
    }
    for figure in &FIGURES {
        let mut cells = vec![figure.label.to_owned()];
        let before = report.baseline().and_then(figure.value);
        for summary in &report.strategies {
            let value = (figure.value)(summary);
            cells.push(value.map_or_else(|| "-".to_owned(), |value| figure.unit.show(value)));
            if changed(summary) {
                let change = before.zip(value).and_then(|(before, value)| figure.unit.change(before, value));
                cells.push(change.unwrap_or_default());
            }
        }
        table.row(cells);
    }
    let errors = report.strategies.iter().filter(|summary| summary.errors > 0).map(error_line);
    let invalid = report.invalid.iter().map(|sentence| wrapped(&format!("INVALID: {sentence}")));
    std::iter::once(table.to_string()).chain(errors).chain(invalid).collect()
}

/// One row of the table.
struct Figure {
    label: &'static str,
    value: fn(&StrategySummary) -> Option<f64>,
    unit: Unit,
}

const FIGURES: [Figure; 14] = [
    Figure { label: "TTFT P50 (ms)", value: |summary| ttft(summary, |ttft| ttft.p50), unit: Unit::Milliseconds },
    Figure { label: "TTFT P90 (ms)", value: |summary| ttft(summary, |ttft| ttft.p90), unit: Unit::Milliseconds },
    Figure { label: "TTFT P95 (ms)", value: |summary| ttft(summary, |ttft| ttft.p95), unit: Unit::Milliseconds },
    Figure { label: "TTFT P99 (ms)", value: |summary| ttft(summary, |ttft| ttft.p99), unit: Unit::Milliseconds },
    Figure { label: "TTFT mean (ms)", value: |summary| ttft(summary, |ttft| ttft.mean), unit: Unit::Milliseconds },
    Figure { label: "Hit rate", value: |summary| summary.measures.hit_rate, unit: Unit::Share },
    Figure { label: "  by counting", value: |summary| summary.predicted_hit_rate, unit: Unit::Share },
    Figure { label: "Requests/s", value: |summary| summary.measures.requests_per_second, unit: Unit::PerSecond },
    Figure {
        label: "Output tokens/s",
        value: |summary| summary.measures.output_tokens_per_second,
        unit: Unit::PerSecond,
    },
    Figure { label: "Requests", value: |summary| Some(summary.requests as f64), unit: Unit::Count },
    Figure { label: "Errors", value: |summary| Some(summary.errors as f64), unit: Unit::Count },
    Figure { label: "Spills", value: |summary| summary.measures.spill_rate, unit: Unit::Share },
    Figure {
        label: "Smallest share",
        value: |summary| summary.measures.instance_share.map(|share| share.min),
        unit: Unit::Share,
    },
    Figure {
        label: "Largest share",
        value: |summary| summary.measures.instance_share.map(|share| share.max),
        unit: Unit::Share,
    },
];

/// What a figure counts: decides how it is written and compared.
#[derive(Clone, Copy)]
enum Unit {
    Milliseconds,
    PerSecond,
    Share,
    Count,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Unit::Share => format!("{:.1}%", value * 100.0),
            Unit::Count => format!("{value:.0}"),
            Unit::PerSecond if value < 100.0 => format!("{value:.2}"),
            Unit::Milliseconds if value < 100.0 => format!("{value:.1}"),
            Unit::Milliseconds | Unit::PerSecond => format!("{value:.0}"),
        }
    }

    /// Percent of the baseline; for shares percentage points, since a percentage of a percentage misleads.
    fn change(self, before: f64, after: f64) -> Option<String> {
        match self {
            Unit::Count => None,
            Unit::Share => Some(format!("{:+.1} pt", (after - before) * 100.0)),
            Unit::Milliseconds | Unit::PerSecond if before == 0.0 => None,
            Unit::Milliseconds | Unit::PerSecond => Some(format!("{:+.1}%", (after / before - 1.0) * 100.0)),
        }
    }
}

fn ttft(summary: &StrategySummary, figure: fn(&Latency<f64>) -> f64) -> Option<f64> {
    summary.measures.ttft_ms.as_ref().map(figure)
}

/// `PREFIX_AWARE errors: timeout 2, status 1`.
fn error_line(summary: &StrategySummary) -> String {
    let kinds: Vec<String> = summary.errors_by_kind.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    format!("{} errors: {}\n", summary.strategy, kinds.join(", "))
}

/// Breaks a sentence into lines, all but the first indented.
pub fn wrapped(sentence: &str) -> String {
    let mut text = String::new();
    let mut width = 0;
    for word in sentence.split(' ') {
        let needed = 1 + word.chars().count();
        if width > 0 && width + needed > LINE_WIDTH {
            text.push_str("\n        ");
            width = 8;
        }
        if width > 0 {
            text.push(' ');
        }
        text.push_str(word);
        width += needed;
    }
    text + "\n"
}

/// Breaks a strategy's name after underscores where it is wider than a column.
fn name_lines(name: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in name.split_inclusive('_') {
        match lines.last_mut() {
            Some(line) if line.len() + part.len() <= NAME_WIDTH => line.push_str(part),
            _ => lines.push(part.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::text;
    use crate::measures::{Latency, Measures, Share};
    use crate::{Report, StrategySummary};

    fn summary(strategy: &str, scale: f64, hit_rate: Option<f64>) -> StrategySummary {
        let ttft_ms = Latency { p50: 390.4, p90: 700.0, p95: 812.25, p99: 1_203.0, mean: 400.0 };
        let scaled = |value: f64| value * scale;
        StrategySummary {
            strategy: strategy.to_owned(),
            requests: 700,
            errors: 0,
            errors_by_kind: BTreeMap::new(),
            measures: Measures {
                ttft_ms: Some(Latency {
                    p50: scaled(ttft_ms.p50),
                    p90: scaled(ttft_ms.p90),
                    p95: scaled(ttft_ms.p95),
                    p99: scaled(ttft_ms.p99),
                    mean: scaled(ttft_ms.mean),
                }),
                hit_rate,
                requests_per_second: Some(10.0 / scale),
                output_tokens_per_second: Some(1_300.0 / scale),
                spill_rate: Some(0.0),
                instance_share: Some(Share { min: 0.131, max: 0.1549 }),
                goodput_per_second: None,
                evicted_blocks_per_second: None,
                gpu_utilisation: None,
                gpu_seconds_per_million_tokens: None,
                cost_per_million_tokens: None,
            },
            predicted_hit_rate: hit_rate.map(|rate| rate + 0.01),
            ci: None,
            change: None,
            detail: None,
        }
    }

    fn report(strategies: Vec<StrategySummary>) -> Report {
        Report {
            scenario: "documents".to_owned(),
            baseline: "RANDOM".to_owned(),
            strategies,
            invalid: Vec::new(),
            speed: 2.0,
            seed: 1,
            users: 46,
            instances: Some(7),
        }
    }

    #[test]
    fn sets_two_strategies_side_by_side() {
        let report = report(vec![summary("RANDOM", 1.0, Some(0.27)), summary("PREFIX_AWARE", 0.2, Some(0.81))]);
        assert_eq!(
            format!("\n{}", text(&report)),
            "
                 RANDOM  PREFIX_AWARE    change
TTFT P50 (ms)       390          78.1    -80.0%
TTFT P90 (ms)       700           140    -80.0%
TTFT P95 (ms)       812           162    -80.0%
TTFT P99 (ms)      1203           241    -80.0%
TTFT mean (ms)      400          80.0    -80.0%
Hit rate          27.0%         81.0%  +54.0 pt
  by counting     28.0%         82.0%  +54.0 pt
Requests/s        10.00         50.00   +400.0%
Output tokens/s    1300          6500   +400.0%
Requests            700           700
Errors                0             0
Spills             0.0%          0.0%   +0.0 pt
Smallest share    13.1%         13.1%   +0.0 pt
Largest share     15.5%         15.5%   +0.0 pt
"
        );
    }

    #[test]
    fn four_strategies_fit_100_columns() {
        let names = ["RANDOM", "ROUND_ROBIN", "LEAST_OUTSTANDING_REQUESTS", "PREFIX_AWARE"];
        let text = text(&report(names.iter().map(|name| summary(name, 1.0, Some(0.5))).collect()));
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        let heading: Vec<&str> = text.lines().take(3).map(str::trim).collect();
        assert_eq!(heading[0], "LEAST_");
        assert_eq!(heading[1], "OUTSTANDING_");
        assert!(heading[2].ends_with("REQUESTS   change  PREFIX_AWARE   change"), "{text}");
    }

    #[test]
    fn long_sentences_are_broken_and_keep_their_words() {
        let sentence = "word ".repeat(60);
        let mut report = report(vec![summary("RANDOM", 1.0, Some(0.3))]);
        report.invalid.push(sentence.trim_end().to_owned());
        let text = text(&report);
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        assert_eq!(text.matches("word").count(), 60);
        assert_eq!(text.lines().filter(|line| line.starts_with("         word")).count(), 3, "{text}");
    }

    #[test]
    fn shows_the_unknown_as_a_dash_and_says_what_is_wrong() {
        let mut broken = summary("PREFIX_AWARE", 1.0, None);
        broken.measures.ttft_ms = None;
        broken.errors = 3;
        broken.errors_by_kind = BTreeMap::from([("status", 1), ("timeout", 2)]);
        let mut report = report(vec![summary("RANDOM", 1.0, Some(0.3)), broken]);
        report.invalid.push("RANDOM: the engines lagged.".to_owned());
        let text = text(&report);
        let row = |label: &str| text.lines().find(|line| line.starts_with(label)).unwrap().split_whitespace().count();
        assert_eq!((row("TTFT P50"), row("Hit rate")), (5, 4), "{text}");
        assert!(text.ends_with("PREFIX_AWARE errors: status 1, timeout 2\nINVALID: RANDOM: the engines lagged.\n"));
    }
}
