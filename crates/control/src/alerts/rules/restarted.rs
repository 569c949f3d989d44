//! An engine's process was replaced: its cache is empty.

use std::time::SystemTime;

use isotherm_config::RestartRule;
use serde_json::Value;

use super::of_instance;
use crate::alerts::book::Condition;
use crate::alerts::readings::{InstanceReading, VariantReading};

pub(super) const NAME: &str = "IsothermEngineRestarted";

pub(super) fn check(variant: &VariantReading, rule: &RestartRule, now: SystemTime) -> Vec<Condition> {
    let condition = |instance: &InstanceReading| {
        let restarted = instance.engine.restarted?;
        let is_recent = now.duration_since(restarted).is_ok_and(|passed| passed < rule.within);
        is_recent.then(|| Condition {
            rule: NAME,
            severity: "warning",
            lasting: rule.lasting,
            labels: of_instance(variant, instance),
            values: Value::Null,
            summary: format!("The engine of {} was restarted", instance.id),
            description:
                "Its cache is empty, so its prefixes are computed anew. Who restarted it? If nobody did, its log \
                          tells why it died."
                    .to_owned(),
        })
    };
    variant.instances.iter().filter_map(condition).collect()
}
