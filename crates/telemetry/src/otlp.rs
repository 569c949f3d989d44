//! OTLP in its JSON form (OpenTelemetry Protocol 1.x, `opentelemetry/proto`): ids in hexadecimal, numbers of 64 bits as
//! strings.

mod metrics;
mod traces;

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

pub use self::metrics::metrics;
pub use self::traces::traces;

/// Who sends: what stands on every span and every metric.
#[derive(Debug, Clone)]
pub struct Sender {
    /// `service.name`.
    pub service: String,
    /// `service.instance.id`: tells one router from another.
    pub instance: String,
    /// The router's version.
    pub version: &'static str,
}

impl Sender {
    fn resource(&self) -> Value {
        json!({ "attributes": [
            text("service.name", &self.service),
            text("service.instance.id", &self.instance),
            text("service.version", self.version),
        ] })
    }

    fn scope(&self) -> Value {
        json!({ "name": "isotherm", "version": self.version })
    }
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn whole(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn fraction(key: &str, value: f64) -> Value {
    json!({ "key": key, "value": { "doubleValue": value } })
}

fn nanoseconds(time: SystemTime) -> String {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos().to_string()
}
