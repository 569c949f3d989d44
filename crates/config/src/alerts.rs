//! `alerts`: what the router itself warns of, and whom it tells.

mod rules;
mod webhook;

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

pub use self::rules::{
    Above, CacheRule, DisagreementRule, FirstTokenRule, HitRateRule, HotPrefixRule, IllRule, OffRule, RestartRule,
};
pub use self::webhook::{WebhookUrl, WebhookUrlError};
use crate::duration;

/// What the router itself warns of: on the dashboard, at `/api/alerts`, in its log, and to webhooks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Alerts {
    /// Whether the rules are evaluated at all.
    pub enabled: bool,
    /// Where messages are sent, in the form of Alertmanager's webhooks: `http://HOST:PORT/PATH`.
    pub webhooks: Vec<WebhookUrl>,
    /// After how long a webhook is told again of what still fires.
    #[serde(with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub repeat: Duration,
    /// How much of the past the rules look at, from 5 seconds to 15 minutes.
    #[serde(serialize_with = "duration::serialize", deserialize_with = "window")]
    #[schemars(schema_with = "duration::schema")]
    pub window: Duration,
    /// How many requests a variant must have had within the window before its rates say anything.
    pub least_requests: u64,
    /// Few prompt tokens come from caches although prefixes repeat.
    pub hit_rate: HitRateRule,
    /// An instance computes again what it was believed to hold.
    pub cache_pressure: CacheRule,
    /// One prefix makes up so much of the traffic that its home cannot serve it alone.
    pub hot_prefix: HotPrefixRule,
    /// Many requests leave their home because it is full.
    pub spills: Above,
    /// An instance is down, or ejected.
    pub instance_ill: IllRule,
    /// The first token takes too long.
    pub first_token: FirstTokenRule,
    /// An engine takes nothing from its cache although prefixes repeat, or says that caching is off.
    pub prefix_caching_off: OffRule,
    /// Replicas of one variant differ in model, version, chat template or cache settings.
    pub replicas_disagree: DisagreementRule,
    /// An engine's process was replaced, and its cache is empty.
    pub engine_restarted: RestartRule,
}

/// The shortest window: a step of what is remembered. And the longest: all of that.
const WINDOW: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(900)];

/// A window that holds less than a step, or more than is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the rules look at 5s to 15m of the past, not {}", duration::render(self.0))]
struct NoWindow(Duration);

fn window<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let [shortest, longest] = WINDOW;
    let given = duration::deserialize(deserializer)?;
    if (shortest..=longest).contains(&given) { Ok(given) } else { Err(D::Error::custom(NoWindow(given))) }
}

impl Default for Alerts {
    fn default() -> Alerts {
        Alerts {
            enabled: true,
            webhooks: Vec::new(),
            repeat: Duration::from_secs(4 * 3_600),
            window: Duration::from_secs(300),
            least_requests: 50,
            hit_rate: HitRateRule::default(),
            cache_pressure: CacheRule::default(),
            hot_prefix: HotPrefixRule::default(),
            spills: Above::default(),
            instance_ill: IllRule::default(),
            first_token: FirstTokenRule::default(),
            prefix_caching_off: OffRule::default(),
            replicas_disagree: DisagreementRule::default(),
            engine_restarted: RestartRule::default(),
        }
    }
}
