//! `aws.quotas`: how much of each kind of resource an account may have.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::value::{in_range, whole};

/// The most that a quota may say.
const MOST: u64 = 1_000_000;

/// How much of each kind of resource an account may have; what asks for more is refused with ResourceLimitExceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quotas {
    /// Models.
    #[serde(deserialize_with = "quota")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub models: u32,
    /// Endpoint configurations.
    #[serde(deserialize_with = "quota")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub endpoint_configs: u32,
    /// Endpoints.
    #[serde(deserialize_with = "quota")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub endpoints: u32,
    /// Inference components, adapters among them.
    #[serde(deserialize_with = "quota")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub inference_components: u32,
    /// Instances and copies of inference components, over all endpoints: each is a program, or a thread of the router's.
    #[serde(deserialize_with = "quota")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub instances: u32,
}

impl Default for Quotas {
    fn default() -> Quotas {
        Quotas { models: 5_000, endpoint_configs: 5_000, endpoints: 500, inference_components: 2_000, instances: 500 }
    }
}

fn quota<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole(deserializer, |given| in_range(given, 1, MOST))
}
