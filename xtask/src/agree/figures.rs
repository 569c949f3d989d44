//! The figures of two reports side by side, and where they disagree.

use std::path::Path;

use isotherm_report::{Align, Table};
use serde_json::Value;

use crate::failure::Failure;

/// Hit rates may differ by this much, in points of 1.
const HIT_RATE: f64 = 0.03;
/// TTFT P50 may differ by this share …
const TTFT_SHARE: f64 = 0.15;
/// … or by so many milliseconds.
const TTFT_MS: f64 = 10.0;

/// What one report says of a strategy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figures {
    pub(crate) requests: u64,
    errors: u64,
    hit_rate: f64,
    p50_ms: f64,
    p90_ms: f64,
}

/// A strategy in both reports.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    pub(crate) strategy: String,
    pub(crate) simulated: Figures,
    pub(crate) measured: Figures,
}

pub(crate) fn read(file: &Path) -> Result<Value, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| Failure::file(file, &error))?;
    serde_json::from_str(&text).map_err(|error| Failure::Failed(format!("{}: {error}", file.display())))
}

/// The strategies of both reports, which must be the same.
pub(crate) fn pairs(simulated: &Value, measured: &Value) -> Result<Vec<Pair>, Failure> {
    let odd = || Failure::Failed("the two reports do not hold the same strategies with all figures".to_owned());
    let (simulated, measured) = (strategies(simulated).ok_or_else(odd)?, strategies(measured).ok_or_else(odd)?);
    if simulated.len() != measured.len() {
        return Err(odd());
    }
    let both = simulated.into_iter().zip(measured);
    both.map(|((strategy, simulated), (other, measured))| {
        (strategy == other).then_some(Pair { strategy, simulated, measured }).ok_or_else(odd)
    })
    .collect()
}

fn strategies(report: &Value) -> Option<Vec<(String, Figures)>> {
    let of = |summary: &Value| {
        let figures = Figures {
            requests: summary["requests"].as_u64()?,
            errors: summary["errors"].as_u64()?,
            hit_rate: summary["hit_rate"].as_f64()?,
            p50_ms: summary["ttft_ms"]["p50"].as_f64()?,
            p90_ms: summary["ttft_ms"]["p90"].as_f64()?,
        };
        Some((summary["strategy"].as_str()?.to_owned(), figures))
    };
    report["strategies"].as_array()?.iter().map(of).collect()
}

impl Pair {
    /// What is too far apart, a sentence each.
    pub(crate) fn disagreements(&self) -> Vec<String> {
        let (simulated, measured) = (self.simulated, self.measured);
        let mut sentences = Vec::new();
        if (simulated.hit_rate - measured.hit_rate).abs() > HIT_RATE {
            sentences.push(format!(
                "{}: the hit rate is {:.1} % simulated and {:.1} % over HTTP, more than 3 points apart",
                self.strategy,
                100.0 * simulated.hit_rate,
                100.0 * measured.hit_rate
            ));
        }
        let apart = (simulated.p50_ms - measured.p50_ms).abs();
        if apart > TTFT_MS && apart > TTFT_SHARE * simulated.p50_ms {
            sentences.push(format!(
                "{}: TTFT P50 is {:.1} ms simulated and {:.1} ms over HTTP, more than 15 % and 10 ms apart",
                self.strategy, simulated.p50_ms, measured.p50_ms
            ));
        }
        if measured.errors > 0 {
            sentences.push(format!("{}: {} requests failed over HTTP", self.strategy, measured.errors));
        }
        sentences
    }
}

/// Two rows for each strategy, and the difference.
pub(crate) fn table(pairs: &[Pair]) -> String {
    let columns = [Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Right];
    let mut table = Table::new(columns);
    table.row(["", "", "requests", "hit rate", "TTFT P50 ms", "P90"]);
    for Pair { strategy, simulated, measured } in pairs {
        for (name, how, figures) in [(strategy.as_str(), "simulated", simulated), ("", "over HTTP", measured)] {
            table.row([
                name.to_owned(),
                how.to_owned(),
                figures.requests.to_string(),
                format!("{:.1}%", 100.0 * figures.hit_rate),
                format!("{:.1}", figures.p50_ms),
                format!("{:.1}", figures.p90_ms),
            ]);
        }
        let relative = |before: f64, after: f64| format!("{:+.1}%", 100.0 * (after / before - 1.0));
        table.row([
            String::new(),
            "difference".to_owned(),
            format!("{:+}", measured.requests as i64 - simulated.requests as i64),
            format!("{:+.1} pt", 100.0 * (measured.hit_rate - simulated.hit_rate)),
            relative(simulated.p50_ms, measured.p50_ms),
            relative(simulated.p90_ms, measured.p90_ms),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{pairs, table};

    fn report(hit_rate: f64, p50: f64) -> Value {
        let ttft = json!({"p50": p50, "p90": 2.0 * p50});
        json!({"strategies": [{"strategy": "RANDOM", "requests": 9, "errors": 0, "hit_rate": hit_rate, "ttft_ms": ttft}]})
    }

    fn disagreements(simulated: (f64, f64), measured: (f64, f64)) -> usize {
        let pairs = pairs(&report(simulated.0, simulated.1), &report(measured.0, measured.1)).unwrap();
        pairs[0].disagreements().len()
    }

    #[test]
    fn small_differences_agree_and_larger_ones_do_not() {
        assert_eq!(disagreements((0.50, 100.0), (0.52, 114.0)), 0);
        assert_eq!(disagreements((0.50, 20.0), (0.48, 29.0)), 0, "10 ms are allowed where 15 % are less");
        assert_eq!(disagreements((0.50, 100.0), (0.54, 100.0)), 1);
        assert_eq!(disagreements((0.50, 100.0), (0.46, 80.0)), 2);
    }

    #[test]
    fn a_report_without_a_figure_is_refused() {
        let mut unknown = report(0.5, 100.0);
        unknown["strategies"][0]["hit_rate"] = Value::Null;
        assert!(pairs(&report(0.5, 100.0), &unknown).is_err());
        assert!(pairs(&report(0.5, 100.0), &json!({"strategies": []})).is_err());
    }

    #[test]
    fn the_table_tells_the_differences() {
        let table = table(&pairs(&report(0.5, 100.0), &report(0.51, 90.0)).unwrap());
        assert!(table.contains("+1.0 pt") && table.contains("-10.0%"), "{table}");
    }
}
