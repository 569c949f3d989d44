//! The first token takes longer than it may.

use isotherm_config::FirstTokenRule;
use serde_json::json;

use super::of_variant;
use crate::alerts::book::Condition;
use crate::alerts::readings::VariantReading;

pub(super) const NAME: &str = "IsothermSlowFirstToken";

pub(super) fn check(variant: &VariantReading, rule: &FirstTokenRule) -> Option<Condition> {
    let (p95, goal) = (variant.first_token_p95?, rule.p95.as_secs_f64());
    (p95 > goal).then(|| Condition {
        rule: NAME,
        severity: "warning",
        lasting: rule.lasting,
        labels: of_variant(variant),
        values: json!({ "p95_seconds": p95, "goal_seconds": goal }),
        summary: format!(
            "{}/{}: P95 of the time to first token is {p95:.1} s, above {goal:.1} s",
            variant.endpoint, variant.variant
        ),
        description:
            "The dashboard tells whether hits, misses or spills are slow. Slow hits: engines are overloaded. Slow \
                      misses: prompts are long and new."
                .to_owned(),
    })
}
