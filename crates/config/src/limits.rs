//! `limits`: how much the router takes in before it refuses.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::value::{in_range, whole};
use crate::{byte_size, duration};

/// How much the router takes in before it refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The largest body of a request, in bytes; a larger one is 413.
    #[serde(with = "byte_size")]
    #[schemars(schema_with = "byte_size::schema")]
    pub body: u64,
    /// The largest body of a request on SageMaker's paths (`/endpoints/NAME/…`), and of an answer that is not streamed, in bytes.
    #[serde(with = "byte_size")]
    #[schemars(schema_with = "byte_size::schema")]
    pub invocation_body: u64,
    /// The largest head of a request, all headers together, in bytes; a larger one is 431.
    #[serde(with = "byte_size")]
    #[schemars(schema_with = "byte_size::schema")]
    pub headers: u64,
    /// The longest path and query of a request, in bytes; a longer one is 414.
    #[serde(with = "byte_size")]
    #[schemars(schema_with = "byte_size::schema")]
    pub uri: u64,
    /// The most connections of clients at once; further ones wait to be accepted.
    #[serde(deserialize_with = "connections")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections: u32,
    /// Who waits when every instance is at its max_in_flight.
    pub queue: Queue,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body: 32 << 20,
            invocation_body: 6 << 20,
            headers: 64 << 10,
            uri: 16 << 10,
            connections: 10_000,
            queue: Queue::default(),
        }
    }
}

/// Who waits when every instance is at its max_in_flight; the others are refused at once.
///
/// When more wait than may, whoever stands last is refused: by `priority` (a field of bodies, lower first), then in turn by
/// tenant, then by arrival.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Queue {
    /// The most requests that wait, for each variant; 0 refuses at once.
    #[serde(deserialize_with = "max_waiting")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_waiting: u32,
    /// The most bytes of their bodies together, for each variant.
    #[serde(with = "byte_size")]
    #[schemars(schema_with = "byte_size::schema")]
    pub max_bytes: u64,
    /// The longest that one waits.
    #[serde(with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub timeout: Duration,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { max_waiting: 1_000, max_bytes: 256 << 20, timeout: Duration::from_secs(30) }
    }
}

fn connections<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole(deserializer, |given| in_range(given, 1, 1_000_000))
}

fn max_waiting<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole(deserializer, |given| in_range(given, 0, 1_000_000))
}
