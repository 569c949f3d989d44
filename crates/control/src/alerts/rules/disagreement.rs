//! Replicas of one variant differ in what must be equal: model, version, chat template, cache settings.

use std::collections::BTreeMap;
use std::fmt;

use isotherm_config::DisagreementRule;
use isotherm_fleet::EngineFigures;
use serde::Serialize;
use serde_json::{Value, json};

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
        values: json!({ "differences": differences }),
        summary: format!("Replicas of {}/{} are not alike", variant.endpoint, variant.variant),
        description: format!(
            "{}. Requests are answered differently, or cached nowhere, depending on where they go.",
            differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        ),
    })
}

/// What the instances in service differ in, and who says what.
#[derive(Debug, Serialize)]
pub(crate) struct Difference {
    pub(crate) aspect: &'static str,
    opinions: Vec<Opinion>,
}

/// What some instances say of themselves.
#[derive(Debug, Serialize)]
struct Opinion {
    /// A text, or models with what is said beside their names.
    says: Value,
    #[serde(skip)]
    words: String,
    instances: Vec<String>,
    /// How many more say so than are named.
    more: usize,
}

/// What an instance says of itself in one matter, in words and as it is; `None` where it does not say.
type Aspect = fn(&InstanceReading) -> Option<(String, Value)>;

/// Every difference; who does not say differs from nobody.
pub(crate) fn differences(variant: &VariantReading) -> Vec<Difference> {
    let aspects: [(&'static str, Aspect); 6] = [
        ("engine", |instance| figures(instance, |figures| Some(figures.kind.as_str().to_owned()))),
        ("version", |instance| text(instance.engine.version.as_deref()?)),
        ("model", |instance| {
            let models = instance.models.as_ref().filter(|models| !models.is_empty())?;
            let words = models.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
            Some((words, json!(models)))
        }),
        ("chat template", |instance| text(&format!("{:08x}", instance.engine.template? >> 32))),
        ("block size", |instance| figures(instance, |figures| figures.block_tokens.map(|tokens| tokens.to_string()))),
        ("cache's hash", |instance| figures(instance, |figures| figures.hash_algorithm.clone())),
    ];
    aspects.into_iter().filter_map(|(name, aspect)| difference(variant, name, aspect)).collect()
}

fn figures(instance: &InstanceReading, of: impl Fn(&EngineFigures) -> Option<String>) -> Option<(String, Value)> {
    let (figures, _) = instance.engine.figures.as_ref()?;
    text(&of(figures)?)
}

fn text(said: &str) -> Option<(String, Value)> {
    Some((said.to_owned(), said.into()))
}

fn difference(variant: &VariantReading, aspect: &'static str, of: Aspect) -> Option<Difference> {
    let mut opinions: BTreeMap<String, Opinion> = BTreeMap::new();
    for instance in variant.instances.iter().filter(|instance| instance.is_in_service()) {
        let Some((words, says)) = of(instance) else { continue };
        let new = || Opinion { says, words: words.clone(), instances: Vec::new(), more: 0 };
        let opinion = opinions.entry(words.clone()).or_insert_with(new);
        match opinion.instances.len() {
            NAMED.. => opinion.more += 1,
            _ => opinion.instances.push(instance.id.clone()),
        }
    }
    (opinions.len() > 1).then(|| Difference { aspect, opinions: opinions.into_values().collect() })
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let opinions = self.opinions.iter().map(ToString::to_string).collect::<Vec<_>>();
        write!(f, "{}: {}", self.aspect, opinions.join("; "))
    }
}

impl fmt::Display for Opinion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Opinion { words, instances, more, .. } = self;
        write!(f, "{words} on {}", instances.join(", "))?;
        if *more > 0 { write!(f, " and {more} more") } else { Ok(()) }
    }
}
