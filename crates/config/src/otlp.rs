//! `otlp`: where traces and metrics are sent in OpenTelemetry's protocol.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::InstanceUrl;
use crate::duration;
use crate::value::{number, parsed};

/// Where traces and metrics are sent: OTLP over HTTP, in its JSON form. Nowhere when absent.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Otlp {
    /// The receiver, such as `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are put behind it.
    #[serde(deserialize_with = "parsed")]
    #[schemars(with = "String", regex(pattern = "^https?://"))]
    pub endpoint: InstanceUrl,
    /// Which share of the traces that begin at this router is recorded, 0 to 1; of others, their parent decides.
    #[serde(default = "all", deserialize_with = "ratio")]
    #[schemars(with = "f64", range(min = 0, max = 1))]
    pub sample_ratio: f64,
    /// How often metrics are sent.
    #[serde(default = "a_minute", with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub metrics_interval: Duration,
    /// `service.name` of what is sent.
    #[serde(default = "isotherm")]
    pub service_name: String,
    /// The environment variable that holds the value of the `authorization` header, where the receiver wants one.
    #[serde(default)]
    pub authorization_env: Option<String>,
}

fn all() -> f64 {
    1.0
}

fn a_minute() -> Duration {
    Duration::from_secs(60)
}

fn isotherm() -> String {
    "isotherm".to_owned()
}

/// A number that is no share.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a share is a number from 0 to 1, not {0}")]
struct ShareError(f64);

fn ratio<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    number(deserializer, |share| if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(ShareError(share)) })
}
