//! `engine_metrics`: how the figures of a variant's engines are read.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ProbePath;
use crate::duration;

/// How the figures of a variant's engines are read: what runs and waits in them, how full their caches are, whether
/// their process is another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EngineMetrics {
    /// Whether engines are asked at all.
    pub enabled: bool,
    /// What is asked for; when absent, `/metrics`, and `/prometheus/metrics` where that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<ProbePath>,
    /// The time between two readings.
    #[serde(with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub interval: Duration,
    /// How long a reading may take.
    #[serde(with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub timeout: Duration,
}

impl Default for EngineMetrics {
    fn default() -> EngineMetrics {
        EngineMetrics { enabled: true, path: None, interval: Duration::from_secs(5), timeout: Duration::from_secs(2) }
    }
}
