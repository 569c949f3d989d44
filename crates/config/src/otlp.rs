//! `otlp`: where traces and metrics are sent in OpenTelemetry's protocol.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::InstanceUrl;
use crate::duration;
use crate::value::{parsed, share};

/// Where traces and metrics are sent: OTLP over HTTP, in its JSON form. Nowhere when absent.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Otlp {
    /// The receiver, such as `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are put behind it.
    #[serde(deserialize_with = "parsed")]
    #[schemars(with = "String", regex(pattern = "^https?://"))]
    pub endpoint: InstanceUrl,
    /// Which share of the traces that begin at this router is recorded, 0 to 1; of others, their parent decides.
    #[serde(default = "all", deserialize_with = "share")]
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

#[cfg(test)]
mod tests {
    use crate::{Config, Environment, Overrides};

    const ENDPOINTS: &str = "endpoints: [{ name: chat, variants: [{ name: a, instances: [] }] }]";

    fn load(otlp: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("isotherm.yaml");
        std::fs::write(&file, format!("otlp: {otlp}\n{ENDPOINTS}\n")).unwrap();
        Config::load(Some(&file), &Environment::default(), &Overrides::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn only_the_receiver_must_be_named() {
        let otlp = load("{ endpoint: 'http://127.0.0.1:4318' }").unwrap().otlp.unwrap();
        assert_eq!((otlp.endpoint.to_string().as_str(), otlp.sample_ratio), ("http://127.0.0.1:4318", 1.0));
        assert_eq!((otlp.metrics_interval.as_secs(), otlp.service_name.as_str()), (60, "isotherm"));
        assert_eq!(
            load("{ endpoint: 'http://127.0.0.1:4318', sample_ratio: 0.1 }").unwrap().otlp.unwrap().sample_ratio,
            0.1
        );
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_would_be_right() {
        let refused = load("{ endpoint: 'http://127.0.0.1:4318', sample_ratio: 2 }").unwrap_err();
        assert!(refused.contains("a share is a number from 0 to 1, not 2"), "{refused}");
        assert!(load("{ endpoint: '127.0.0.1:4318' }").is_err());
        assert!(load("{ sample_ratio: 1 }").unwrap_err().contains("endpoint"));
    }
}
