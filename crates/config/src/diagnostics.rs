//! `diagnostics`: what is kept of requests for whoever asks why one missed the cache, and what a cache is worth.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::byte_size;
use crate::value::{in_range, number, whole};

/// What is kept of the last requests, as hashes: for `isotherm explain --request`, shadow strategies and
/// `isotherm analyze --router`. Off when absent; `{}` turns it on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Diagnostics {
    /// From how many requests a second hashes are taken, at most; what comes beyond is not told of.
    #[serde(deserialize_with = "requests_per_second")]
    #[schemars(range(min = 1, max = 100_000))]
    pub requests_per_second: u32,
    /// How much memory the hashes of the last requests take, in bytes.
    #[serde(with = "byte_size")]
    #[schemars(schema_with = "byte_size::schema")]
    pub memory: u64,
    /// Whether clients who ask what changed since an earlier response of theirs are told, in the response header
    /// `x-isotherm-cache-diagnostics`.
    pub tell_clients: bool,
    /// What an instance costs an hour, in any currency: so what is saved is told in money, too.
    #[serde(deserialize_with = "price", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", extend("minimum" = 0))]
    pub instance_hour_price: Option<f64>,
}

impl Default for Diagnostics {
    fn default() -> Diagnostics {
        Diagnostics { requests_per_second: 500, memory: 16 << 20, tell_clients: false, instance_hour_price: None }
    }
}

/// A number that is no price.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a price is a number from 0, not {0}")]
struct PriceError(f64);

fn requests_per_second<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole(deserializer, |given| in_range(given, 1, 100_000))
}

fn price<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let price =
        number(
            deserializer,
            |price| {
                if price.is_finite() && price >= 0.0 { Ok(price) } else { Err(PriceError(price)) }
            },
        );
    price.map(Some)
}
