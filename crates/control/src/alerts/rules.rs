//! The rules, one per file: each is a function of what was read, its settings, and nothing else.

mod cache_pressure;
mod disagreement;
mod first_token;
mod hit_rate;
mod hot_prefix;
mod instance_ill;
mod prefix_caching_off;
mod restarted;
mod spills;

use std::time::SystemTime;

use isotherm_config::Alerts;

use super::book::{Condition, Labels};
use super::readings::{InstanceReading, VariantReading};
pub(crate) use disagreement::differences;
pub(crate) use prefix_caching_off::is_off;

/// Every rule's name, as it stands in `alertname`.
pub(crate) const NAMES: [&str; 9] = [
    hit_rate::NAME,
    cache_pressure::NAME,
    hot_prefix::NAME,
    spills::NAME,
    instance_ill::NAME,
    first_token::NAME,
    prefix_caching_off::NAME,
    disagreement::NAME,
    restarted::NAME,
];

/// Everything that holds now.
pub(crate) fn check(variants: &[VariantReading], settings: &Alerts, now: SystemTime) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for variant in variants {
        let talkative = variant.requests >= settings.least_requests;
        if settings.hit_rate.enabled && talkative {
            conditions.extend(hit_rate::check(variant, &settings.hit_rate));
        }
        if settings.cache_pressure.enabled {
            conditions.extend(cache_pressure::check(variant, &settings.cache_pressure));
        }
        if settings.hot_prefix.enabled && talkative {
            conditions.extend(hot_prefix::check(variant, &settings.hot_prefix));
        }
        if settings.spills.enabled && talkative {
            conditions.extend(spills::check(variant, &settings.spills));
        }
        if settings.instance_ill.enabled {
            conditions.extend(instance_ill::check(variant, &settings.instance_ill));
        }
        if settings.first_token.enabled && variant.first_tokens >= settings.least_requests {
            conditions.extend(first_token::check(variant, &settings.first_token));
        }
        if settings.prefix_caching_off.enabled {
            conditions.extend(prefix_caching_off::check(variant, &settings.prefix_caching_off));
        }
        if settings.replicas_disagree.enabled {
            conditions.extend(disagreement::check(variant, &settings.replicas_disagree));
        }
        if settings.engine_restarted.enabled {
            conditions.extend(restarted::check(variant, &settings.engine_restarted, now));
        }
    }
    conditions
}

fn of_variant(variant: &VariantReading) -> Labels {
    Labels::from([("endpoint", variant.endpoint.clone()), ("variant", variant.variant.clone())])
}

fn of_instance(variant: &VariantReading, instance: &InstanceReading) -> Labels {
    let mut labels = of_variant(variant);
    labels.insert("instance", instance.id.clone());
    labels
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
