//! `health`: how the instances of a variant are probed.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::duration;
use crate::value::{in_range, parsed, whole};

/// How the instances of a variant are probed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Health {
    /// What is asked for; when absent, `/health`, and `/v1/models` where that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<ProbePath>,
    /// The time between two probes.
    #[serde(with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub interval: Duration,
    /// How long a probe may take.
    #[serde(with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub timeout: Duration,
    /// How many probes in a row must fail before the instance is down; one good probe ends it.
    #[serde(deserialize_with = "failures")]
    #[schemars(range(min = 1, max = 100))]
    pub failures: u32,
}

impl Default for Health {
    fn default() -> Health {
        Health { path: None, interval: Duration::from_secs(2), timeout: Duration::from_secs(5), failures: 3 }
    }
}

fn failures<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole(deserializer, |given| in_range(given, 1, 100))
}

/// A path that a probe asks for, with its query if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbePath(String);

impl ProbePath {
    /// The path as it goes on the request line.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProbePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that no probe can ask for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no path; allowed: a path that begins with a slash and has no spaces, such as /health")]
pub struct ProbePathError(String);

impl FromStr for ProbePath {
    type Err = ProbePathError;

    fn from_str(text: &str) -> Result<ProbePath, ProbePathError> {
        if text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            Ok(ProbePath(text.to_owned()))
        } else {
            Err(ProbePathError(text.to_owned()))
        }
    }
}

impl<'de> Deserialize<'de> for ProbePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ProbePath, D::Error> {
        parsed(deserializer)
    }
}

impl Serialize for ProbePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl JsonSchema for ProbePath {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ProbePath".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^/[^# ]*$" })
    }
}
