//! The report of a benchmark or a simulation: strategies side by side. Serialises as the one JSON form of both.

use serde::Serialize;

use crate::StrategySummary;

/// `{scenario, baseline, strategies: […], …}`; keys may be added, never renamed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// What was sent, for instance `documents`.
    pub scenario: String,
    /// The strategy that changes refer to, in capitals; usually the first.
    pub baseline: String,
    /// In the order in which they ran.
    pub strategies: Vec<StrategySummary>,
    /// Why the figures must not be trusted, one sentence each; empty when they may.
    pub invalid: Vec<String>,
    /// How many times faster than the wall clock emulated engines ran; all figures are in the engines' time.
    pub speed: f64,
    /// The seed of the workload.
    pub seed: u64,
    /// How many users sent requests.
    pub users: u32,
    /// How many instances served, where that is known.
    pub instances: Option<u32>,
}

impl Report {
    /// The strategy that the others are compared with.
    pub fn baseline(&self) -> Option<&StrategySummary> {
        self.strategies.iter().find(|summary| summary.strategy == self.baseline)
    }
}
