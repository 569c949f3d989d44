//! What is known of the engine that an instance runs: its figures, its version, its chat template.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::EngineFigures;

/// What an instance's engine told last, and what was wrong when it told nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EngineReport {
    /// Its last figures, and when they were read.
    pub figures: Option<(Arc<EngineFigures>, SystemTime)>,
    /// Why the last reading brought none.
    pub problem: Option<Arc<str>>,
    /// How far its clock is ahead of this machine's, in seconds; accurate to a second or two.
    pub clock_ahead: Option<f64>,
    /// How often its process was found to be another one.
    pub restarts: u64,
    /// When that was last.
    pub restarted: Option<SystemTime>,
    /// Whether it was asked for what follows.
    pub who_asked: bool,
    /// Its version, as it says.
    pub version: Option<Arc<str>>,
    /// A hash of how it renders a conversation: replicas with one template have one.
    pub template: Option<u64>,
}

/// The same as it is listed to people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EngineStatus {
    /// Its figures.
    #[serde(flatten)]
    figures: Option<EngineFigures>,
    /// How old they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<Arc<str>>,
    /// Its chat template's hash, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_ahead_seconds: Option<f64>,
    restarts: u64,
}

impl EngineStatus {
    /// As it stands; `None` where nobody asked the engine yet.
    pub(crate) fn of(report: &EngineReport) -> Option<EngineStatus> {
        if *report == EngineReport::default() {
            return None;
        }
        let age = |read: SystemTime| read.elapsed().as_ref().map(Duration::as_secs_f64).unwrap_or_default();
        let (figures, read) = report.figures.clone().unzip();
        Some(EngineStatus {
            figures: figures.map(Arc::unwrap_or_clone),
            age_seconds: read.map(age),
            problem: report.problem.clone(),
            version: report.version.clone(),
            template: report.template.map(|hash| format!("{hash:016x}")),
            clock_ahead_seconds: report.clock_ahead,
            restarts: report.restarts,
        })
    }
}
