//! Few prompt tokens come from caches although prefixes repeat.

use isotherm_config::HitRateRule;
use serde_json::json;

use super::{of_variant, percent};
use crate::alerts::book::Condition;
use crate::alerts::readings::VariantReading;

pub(super) const NAME: &str = "IsothermLowHitRate";

/// Characters of a token of English prose.
const CHARACTERS_PER_TOKEN: f64 = 4.2;

pub(super) fn check(variant: &VariantReading, rule: &HitRateRule) -> Option<Condition> {
    let (hit_rate, repeats) = (variant.hit_rate?, variant.repeat_share?);
    if hit_rate >= rule.below || repeats < rule.repeats || repeats * known_part(variant) <= rule.below {
        return None;
    }
    let place = format!("{}/{}", variant.endpoint, variant.variant);
    Some(Condition {
        rule: NAME,
        severity: "warning",
        lasting: rule.lasting,
        labels: of_variant(variant),
        values: json!({ "hit_rate": hit_rate, "repeats": repeats, "goal": rule.below }),
        summary: format!("{place} takes only {} of its prompt tokens from caches", percent(hit_rate)),
        description: format!(
            "{} of the requests begin like earlier ones, so the goal of {} can be met. Are caches too small, homes full \
             (see spills), or does the engine cache nothing? `isotherm doctor` tells.",
            percent(repeats),
            percent(rule.below)
        ),
    })
}

/// The part of a prompt that is known to repeat with its key: what lies beyond the prefix length may differ each time.
fn known_part(variant: &VariantReading) -> f64 {
    let mean = variant.short.tokens as f64 / variant.short.prompts.max(1) as f64;
    let characters = mean * CHARACTERS_PER_TOKEN;
    match variant.prefix_length {
        Some(length) if characters > 0.0 => (f64::from(length) / characters).min(1.0),
        _ => 1.0,
    }
}
