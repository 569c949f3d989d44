//! An engine takes nothing from its cache although prefixes repeat there, or says that caching is off.

use isotherm_config::OffRule;
use serde_json::json;

use super::of_instance;
use crate::alerts::book::Condition;
use crate::alerts::readings::{InstanceReading, VariantReading};

pub(super) const NAME: &str = "IsothermPrefixCachingOff";

/// How many requests must have come back to a prefix in vain.
const LEAST_REPEATED: u64 = 8;

pub(super) fn check(variant: &VariantReading, rule: &OffRule) -> Vec<Condition> {
    let condition = |instance: &InstanceReading| {
        let in_vain = (says(instance) != Some(false)).then_some(instance.repeated.requests);
        let evidence = in_vain.map_or_else(
            || "Its metrics say so.".to_owned(),
            |requests| {
                format!("{requests} requests came back to prefixes that it had served, and nothing of them was cached.")
            },
        );
        is_off(instance).then(|| Condition {
            rule: NAME,
            severity: "warning",
            lasting: rule.lasting,
            labels: of_instance(variant, instance),
            values: json!({ "requests": in_vain }),
            summary: format!("{} caches no prefixes", instance.id),
            description: format!(
                "{evidence} Start vLLM without --no-enable-prefix-caching, SGLang without --disable-radix-cache, \
                 TensorRT-LLM with enable_block_reuse, llama.cpp with --cache-prompt."
            ),
        })
    };
    variant.instances.iter().filter_map(condition).collect()
}

/// Whether an engine caches nothing: by its word, or where it says nothing, by what it does. One that says that it does
/// has lost what it had.
pub(crate) fn is_off(instance: &InstanceReading) -> bool {
    says(instance).map_or_else(|| has_no_hit(instance), |on| !on)
}

fn says(instance: &InstanceReading) -> Option<bool> {
    instance.engine.figures.as_ref().and_then(|(figures, _)| figures.prefix_caching)
}

fn has_no_hit(instance: &InstanceReading) -> bool {
    let repeated = instance.repeated;
    repeated.requests >= LEAST_REPEATED && repeated.misses == repeated.requests && instance.counts.cached_tokens == 0
}
