//! Replicas of a variant are alike in model, version, chat template and cache settings.

use super::{Finding, Verdict, finding, name, ok};
use crate::alerts::{VariantReading, differences};

const CHECK: &str = "replicas";

pub(super) fn check(variant: &VariantReading) -> Vec<Finding> {
    let differences = differences(variant);
    if differences.is_empty() {
        let says = variant.instances.iter().filter(|instance| instance.models.is_some()).count();
        return (says > 1).then(|| ok(CHECK, name(variant), format!("{says} are alike"))).into_iter().collect();
    }
    differences
        .into_iter()
        .map(|difference| {
            let (verdict, fix) = match difference.aspect {
                "model" | "chat template" => (
                    Verdict::Problem,
                    "Start all replicas with the same model, context length and chat template, or give each kind a variant \
                     or an endpoint of its own.",
                ),
                _ => (Verdict::Warning, "Start all replicas alike: the same release, block size and cache settings."),
            };
            finding(CHECK, verdict, name(variant), difference.to_string(), fix)
        })
        .collect()
}
