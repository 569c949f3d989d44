//! An instance computes again what it was believed to hold: its cache is too small for its part of the traffic.

use isotherm_config::CacheRule;
use serde_json::json;

use super::{is_off, of_instance, percent};
use crate::alerts::book::Condition;
use crate::alerts::readings::{InstanceReading, VariantReading};

pub(super) const NAME: &str = "IsothermCachePressure";

/// How many repeated requests say something.
const LEAST_REPEATED: u64 = 20;

/// How many tokens must have been believed to be cached.
const LEAST_EXPECTED: u64 = 50_000;

pub(super) fn check(variant: &VariantReading, rule: &CacheRule) -> Vec<Condition> {
    let condition = |instance: &InstanceReading| {
        let missing = missing(instance).filter(|missing| *missing > rule.above && !is_off(instance))?;
        let usage = instance.engine.figures.as_ref().and_then(|(figures, _)| figures.kv_cache_usage);
        let held = usage.map_or_else(String::new, |usage| format!(" Running requests hold {} of it.", percent(usage)));
        Some(Condition {
            rule: NAME,
            severity: "warning",
            lasting: rule.lasting,
            labels: of_instance(variant, instance),
            values: json!({ "missing": missing, "kv_cache_usage": usage }),
            summary: format!("{} has lost {} of what it was believed to have cached", instance.id, percent(missing)),
            description: format!(
                "Its cache is too small for the prefixes that come home there.{held} Add instances, give the engine more \
                 memory for its cache, or lower concurrency_threshold so that fewer requests run at once."
            ),
        })
    };
    variant.instances.iter().filter_map(condition).collect()
}

/// The share of what was believed to be cached that was not: by ADAPTIVE's own belief in tokens where there is one, else
/// by requests whose prefix the instance had served before.
fn missing(instance: &InstanceReading) -> Option<f64> {
    let counts = &instance.counts;
    if let Some(expected) = counts.expected_cached_tokens {
        let of_prompts = expected as f64 / counts.cache_reported_prompt_tokens.max(1) as f64;
        return (expected >= LEAST_EXPECTED && of_prompts >= 0.1)
            .then(|| 1.0 - (counts.cached_tokens as f64 / expected as f64).min(1.0));
    }
    let repeated = instance.repeated;
    (repeated.requests >= LEAST_REPEATED).then(|| repeated.misses as f64 / repeated.requests as f64)
}
