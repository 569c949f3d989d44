//! The rules' settings: on or off, from which value on, and for how long before anybody is told.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::duration;
use crate::value::{number, share};

/// A number of times that no instance can have of its fair share, or that every instance has.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("must be a number from 1 to 1000 times the fair share, not {0}")]
struct NoSkew(f64);

fn skew<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    number(deserializer, |given| if (1.0..=1_000.0).contains(&given) { Ok(given) } else { Err(NoSkew(given)) })
}

/// Makes a rule's settings: whether it is on, how long it must hold, and what is its own.
macro_rules! rule {
    ($(#[$meta:meta])* $name:ident lasting $seconds:literal { $($(#[$field_meta:meta])* $field:ident: $type:ty = $default:expr,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            /// Whether the rule is evaluated.
            pub enabled: bool,
            /// For how long it must hold before it fires.
            #[serde(rename = "for", with = "duration::or_zero")]
            #[schemars(schema_with = "duration::schema")]
            pub lasting: Duration,
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { enabled: true, lasting: Duration::from_secs($seconds), $($field: $default,)* }
            }
        }
    };
}

rule! {
    /// When the hit rate is too low.
    HitRateRule lasting 600 {
        /// The goal: cached prompt tokens of all of them.
        #[serde(deserialize_with = "share")]
        #[schemars(range(min = 0, max = 1))]
        below: f64 = 0.3,
        /// The share of requests whose prefix was seen before from which on a hit rate can be expected.
        #[serde(deserialize_with = "share")]
        #[schemars(range(min = 0, max = 1))]
        repeats: f64 = 0.5,
    }
}

rule! {
    /// When an instance has lost what it was believed to hold.
    CacheRule lasting 300 {
        /// The share of requests with a prefix that their instance had served before of which nothing was cached, or of
        /// the tokens that were believed to be cached which were not.
        #[serde(deserialize_with = "share")]
        #[schemars(range(min = 0, max = 1))]
        above: f64 = 0.3,
    }
}

rule! {
    /// When one prefix is too hot.
    HotPrefixRule lasting 600 {
        /// Its share of the variant's requests.
        #[serde(deserialize_with = "share")]
        #[schemars(range(min = 0, max = 1))]
        above: f64 = 0.4,
        /// How many times its fair share of the requests the busiest instance must have, 1 to 1,000.
        #[serde(deserialize_with = "skew")]
        #[schemars(range(min = 1, max = 1_000))]
        skew: f64 = 2.0,
    }
}

rule! {
    /// When a share is too high.
    Above lasting 600 {
        /// The share.
        #[serde(deserialize_with = "share")]
        #[schemars(range(min = 0, max = 1))]
        above: f64 = 0.2,
    }
}

rule! {
    /// When an instance is ill.
    IllRule lasting 60 {}
}

rule! {
    /// When first tokens are late.
    FirstTokenRule lasting 600 {
        /// The time within which 95 of 100 requests are to have their first token.
        #[serde(with = "duration")]
        #[schemars(schema_with = "duration::schema")]
        p95: Duration = Duration::from_secs(5),
    }
}

rule! {
    /// When an engine caches no prefixes.
    OffRule lasting 60 {}
}

rule! {
    /// When replicas differ.
    DisagreementRule lasting 300 {}
}

rule! {
    /// When an engine was restarted.
    RestartRule lasting 0 {
        /// How long after a restart it is told.
        #[serde(with = "duration")]
        #[schemars(schema_with = "duration::schema")]
        within: Duration = Duration::from_secs(300),
    }
}
