//! Replicas of one variant differ in what must be equal: model, version, chat template, cache settings.

use std::collections::BTreeMap;

use isotherm_config::DisagreementRule;
use isotherm_fleet::EngineFigures;

use super::of_variant;
use crate::alerts::book::Condition;
use crate::alerts::readings::{InstanceReading, VariantReading};

pub(super) const NAME: &str = "IsothermReplicasDisagree";

/// How many instances are named for each opinion.
const NAMED: usize = 3;

pub(super) fn check(variant: &VariantReading, rule: &DisagreementRule) -> Option<Condition> {
    let differences = differences(variant);
    (!differences.is_empty()).then(|| Condition {
        rule: NAME,
        severity: "warning",
        lasting: rule.lasting,
        labels: of_variant(variant),
        summary: format!("Replicas of {}/{} are not alike", variant.endpoint, variant.variant),
        description: format!(
            "{}. Requests are answered differently, or cached nowhere, depending on where they go.",
            differences.into_iter().map(|(_, difference)| difference).collect::<Vec<_>>().join("; ")
        ),
    })
}

/// What an instance says of itself in one matter; `None` where it does not say.
type Aspect = fn(&InstanceReading) -> Option<String>;

/// What the instances in service differ in, and who says what.
pub(crate) fn differences(variant: &VariantReading) -> Vec<(&'static str, String)> {
    let aspects: [(&'static str, Aspect); 6] = [
        ("engine", |instance| figures(instance, |figures| Some(figures.kind.as_str().to_owned()))),
        ("version", |instance| instance.engine.version.as_deref().map(str::to_owned)),
        ("model", |instance| {
            let models = instance.models.as_ref().filter(|models| !models.is_empty())?;
            Some(models.iter().map(String::as_str).collect::<Vec<_>>().join(" and "))
        }),
        ("chat template", |instance| instance.engine.template.map(|hash| format!("{:08x}", hash >> 32))),
        ("block size", |instance| figures(instance, |figures| figures.block_tokens.map(|tokens| tokens.to_string()))),
        ("cache's hash", |instance| figures(instance, |figures| figures.hash_algorithm.clone())),
    ];
    aspects.into_iter().filter_map(|(name, aspect)| Some((name, difference(variant, name, aspect)?))).collect()
}

fn figures(instance: &InstanceReading, of: impl Fn(&EngineFigures) -> Option<String>) -> Option<String> {
    instance.engine.figures.as_ref().and_then(|(figures, _)| of(figures))
}

/// Who does not say differs from nobody.
fn difference(
    variant: &VariantReading,
    name: &str,
    aspect: impl Fn(&InstanceReading) -> Option<String>,
) -> Option<String> {
    let mut opinions: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for instance in variant.instances.iter().filter(|instance| instance.is_in_service()) {
        if let Some(opinion) = aspect(instance) {
            opinions.entry(opinion).or_default().push(&instance.id);
        }
    }
    let told = opinions.iter().map(|(opinion, ids)| {
        let more = ids.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{opinion} on {}{more}", ids.iter().take(NAMED).copied().collect::<Vec<_>>().join(", "))
    });
    (opinions.len() > 1).then(|| format!("{name}: {}", told.collect::<Vec<_>>().join("; ")))
}
