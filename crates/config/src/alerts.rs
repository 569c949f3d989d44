//! `alerts`: what the router itself warns of, and whom it tells.

mod rules;
mod webhook;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// How much of the past the rules look at; 15 minutes at most.
    #[serde(with = "duration")]
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
