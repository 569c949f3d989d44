//! One prefix makes up so much of the traffic that its home cannot serve it alone.

use isotherm_config::HotPrefixRule;
use serde_json::json;

use super::{of_variant, percent};
use crate::alerts::book::Condition;
use crate::alerts::readings::VariantReading;

pub(super) const NAME: &str = "IsothermHotPrefix";

/// The share of spills from which on a home is full: a prefix that fits is none too hot.
const FULL: f64 = 0.05;

pub(super) fn check(variant: &VariantReading, rule: &HotPrefixRule) -> Option<Condition> {
    let (key, share) = variant.hottest.as_ref().filter(|(_, share)| *share >= rule.above)?;
    let spilled = variant.spilled as f64 / variant.requests.max(1) as f64;
    let all: u64 = variant.instances.iter().map(|instance| instance.counts.requests).sum();
    let skew =
        |instance: &super::InstanceReading| instance.counts.requests as f64 / all.max(1) as f64 / instance.fair_share;
    let busiest = variant.instances.iter().max_by(|a, b| skew(a).total_cmp(&skew(b)))?;
    if variant.instances.len() < 2 || skew(busiest) < rule.skew || spilled < FULL {
        return None;
    }
    let short: String = key.chars().take(16).collect();
    Some(Condition {
        rule: NAME,
        severity: "warning",
        lasting: rule.lasting,
        labels: of_variant(variant),
        values: json!({ "share": share, "prefix": short, "busiest": busiest.id, "skew": skew(busiest), "spilled": spilled }),
        summary: format!("{} of the requests to {}/{} begin alike", percent(*share), variant.endpoint, variant.variant),
        description: format!(
            "Prefix {short} gives {} {:.1} times its fair share, and {} of all requests spill. Raise prefix_length so that \
             it splits, raise concurrency_threshold, or let ADAPTIVE spread it.",
            busiest.id,
            skew(busiest),
            percent(spilled)
        ),
    })
}
