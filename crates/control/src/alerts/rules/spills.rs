//! Many requests leave their home because it is full.

use isotherm_config::Above;
use serde_json::json;

use super::{of_variant, percent};
use crate::alerts::book::Condition;
use crate::alerts::readings::VariantReading;

pub(super) const NAME: &str = "IsothermSpills";

pub(super) fn check(variant: &VariantReading, rule: &Above) -> Option<Condition> {
    let share = variant.spilled as f64 / variant.requests.max(1) as f64;
    (share > rule.above).then(|| Condition {
        rule: NAME,
        severity: "warning",
        lasting: rule.lasting,
        labels: of_variant(variant),
        values: json!({ "share": share }),
        summary: format!(
            "{}/{} sends {} of its requests away from home",
            variant.endpoint,
            variant.variant,
            percent(share)
        ),
        description: "Homes are full too often: each such request computes its prompt anew. Add instances, or raise \
                      concurrency_threshold or max_in_flight where the engines can take more."
            .to_owned(),
    })
}
