//! An instance is down, or fails requests and is left out.

use isotherm_config::IllRule;
use serde_json::json;

use super::of_instance;
use crate::alerts::book::Condition;
use crate::alerts::readings::{InstanceReading, VariantReading};

pub(super) const NAME: &str = "IsothermInstanceIll";

pub(super) fn check(variant: &VariantReading, rule: &IllRule) -> Vec<Condition> {
    let nobody = variant.instances.iter().all(|instance| instance.availability == "down");
    let condition = |instance: &InstanceReading| {
        let (what, help) = match instance.availability {
            "down" => ("does not answer its probes", "Its prefixes are computed anew elsewhere until it is back."),
            "ejected" => ("fails requests", "isotherm_upstream_errors_total tells how; its own log tells why."),
            _ => return None,
        };
        let problem = instance.problem.as_ref().map_or_else(String::new, |problem| format!("{problem}. "));
        Some(Condition {
            rule: NAME,
            severity: if nobody { "critical" } else { "warning" },
            lasting: rule.lasting,
            labels: of_instance(variant, instance),
            values: json!({ "availability": instance.availability, "problem": instance.problem }),
            summary: format!("{} {what}", instance.id),
            description: format!("{problem}{help}"),
        })
    };
    variant.instances.iter().filter_map(condition).collect()
}
