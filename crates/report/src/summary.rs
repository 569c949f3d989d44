//! One strategy's run in figures.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::RequestRecord;
use crate::interval::intervals;
use crate::measures::{Frame, Measures};

/// What a strategy achieved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StrategySummary {
    /// Its name in capitals.
    pub strategy: String,
    /// Requests measured, without those of the warm-up.
    pub requests: u64,
    /// How many of these were not answered in full.
    pub errors: u64,
    /// These again, by kind.
    pub errors_by_kind: BTreeMap<&'static str, u64>,
    #[serde(flatten)]
    pub measures: Measures<f64>,
    /// The hit rate that counting predicts for caches without limit, in tokens; `None` for strategies without a formula.
    pub predicted_hit_rate: Option<f64>,
    /// 95 % intervals of the same figures, `[low, high]`; `None` with fewer than five users.
    pub ci: Option<Measures<[f64; 2]>>,
    /// How the figures differ from the baseline's, where runs were repeated with the same seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// What pictures show, where it was collected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
}

/// How a strategy differs from the baseline: relative, in points of 1 for shares.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    #[serde(flatten)]
    pub measures: Measures<f64>,
    /// 95 % intervals, both strategies drawn together.
    pub ci: Measures<[f64; 2]>,
}

/// The course and the distribution behind the figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Detail {
    /// TTFT in milliseconds at 0 %, 1 %, … 100 % of the requests.
    pub ttft_quantiles_ms: Vec<f64>,
    /// From the run's start to its end.
    pub timeline: Vec<Moment>,
    /// Each instance's share of the requests, 0 to 1.
    pub instance_shares: Vec<f64>,
}

/// A stretch of time in a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// Its middle, in seconds since the start.
    pub seconds: f64,
    /// Of the requests sent in it; `None` if there were none.
    pub hit_rate: Option<f64>,
    /// Of the requests sent in it; `None` if there were none.
    pub ttft_p50_ms: Option<f64>,
    /// Of the requests sent in it; `None` if there were none.
    pub ttft_p90_ms: Option<f64>,
}

impl StrategySummary {
    /// Summarises a run. `instances` is the size of the fleet, where that is known.
    pub fn of(strategy: &str, records: &[RequestRecord], instances: Option<u32>) -> StrategySummary {
        let frame = Frame::of(records, instances);
        let mut errors_by_kind = BTreeMap::new();
        let mut requests = 0;
        for record in records.iter().filter(|record| !record.warm_up) {
            requests += 1;
            if let Some(failure) = &record.failure {
                *errors_by_kind.entry(failure.kind.as_str()).or_default() += 1;
            }
        }
        StrategySummary {
            strategy: strategy.to_owned(),
            requests,
            errors: errors_by_kind.values().sum(),
            errors_by_kind,
            measures: frame.measure(records.iter()),
            predicted_hit_rate: None,
            ci: intervals(records, &frame),
            change: None,
            detail: None,
        }
    }

    /// Adds what counting predicts, 0 to 1.
    #[must_use]
    pub fn with_predicted_hit_rate(mut self, predicted: Option<f64>) -> StrategySummary {
        self.predicted_hit_rate = predicted;
        self
    }
}

#[cfg(test)]
mod tests;
