//! The figures by which fleets are sized and parameters chosen.

use std::fmt;
use std::str::FromStr;

use isotherm_report::measures::{Latency, Measures};

/// One figure of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Time to first token, in milliseconds.
    Ttft(Point),
    /// Cached tokens / prompt tokens.
    HitRate,
    /// Good answers per second.
    Goodput,
}

/// Where a distribution is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The 50th percentile.
    P50,
    /// The 90th.
    P90,
    /// The 95th.
    P95,
    /// The 99th.
    P99,
    /// The arithmetic mean.
    Mean,
}

const NAMES: [(&str, Figure); 7] = [
    ("ttft_p50", Figure::Ttft(Point::P50)),
    ("ttft_p90", Figure::Ttft(Point::P90)),
    ("ttft_p95", Figure::Ttft(Point::P95)),
    ("ttft_p99", Figure::Ttft(Point::P99)),
    ("ttft_mean", Figure::Ttft(Point::Mean)),
    ("hit_rate", Figure::HitRate),
    ("goodput", Figure::Goodput),
];

impl Figure {
    /// Its value among others; `None` where it is unknown.
    pub(crate) fn of(self, measures: &Measures<f64>) -> Option<f64> {
        match self {
            Figure::Ttft(point) => measures.ttft_ms.as_ref().map(|ttft| point.of(ttft)),
            Figure::HitRate => measures.hit_rate,
            Figure::Goodput => measures.goodput_per_second,
        }
    }

    pub(crate) fn less_is_better(self) -> bool {
        matches!(self, Figure::Ttft(_))
    }

    pub(crate) fn is_better(self, value: f64, than: f64) -> bool {
        if self.less_is_better() { value < than } else { value > than }
    }

    /// A value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Figure::Ttft(_) if value < 100.0 => format!("{value:.1} ms"),
            Figure::Ttft(_) => format!("{value:.0} ms"),
            Figure::HitRate => format!("{:.1} %", 100.0 * value),
            Figure::Goodput => format!("{value:.2}/s"),
        }
    }
}

impl Point {
    fn of(self, ttft: &Latency<f64>) -> f64 {
        match self {
            Point::P50 => ttft.p50,
            Point::P90 => ttft.p90,
            Point::P95 => ttft.p95,
            Point::P99 => ttft.p99,
            Point::Mean => ttft.mean,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, figure)| figure == self).map_or("", |(name, _)| name);
        formatter.write_str(name)
    }
}

impl FromStr for Figure {
    type Err = UnknownFigure;

    fn from_str(text: &str) -> Result<Figure, UnknownFigure> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, figure)| *figure).ok_or_else(|| UnknownFigure { given: text.to_owned() })
    }
}

/// A text that names no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is no figure; allowed: {}", NAMES.map(|(name, _)| name).join(", "))]
pub struct UnknownFigure {
    given: String,
}
