//! How much of an endpoint's traffic each revision of each variant gets while a change moves it.

use super::orders::coming;
use super::progress::{Progress, Side};
use crate::records::{EndpointRecord, VariantRecord};

/// What a revision of a variant gets of the traffic, relative to the others.
///
/// The old and the new configuration each spread traffic by their own weights; a change mixes the two in the share that
/// has moved. So a variant that stays in place gets from both, and the sum is right at every step.
pub(super) fn weight(record: &EndpointRecord, progress: &Progress, variant: &str, revision: u64) -> f64 {
    let part = |variants: &[VariantRecord]| {
        let total = total(variants);
        if total > 0.0 { desired(variants, variant) / total } else { 0.0 }
    };
    // The sum moves from the old one to the new one: a shadow's weight is relative to it.
    let old = &record.serving.variants;
    let new = coming(record, progress).map_or(old, |target| &target.variants);
    let share = progress.rollout.as_ref().map_or(0.0, |rollout| rollout.share);
    mixed(record, progress, variant, revision, part) * ((1.0 - share) * total(old) + share * total(new))
}

/// The weight of a revision of a variant as people are told it: on the scale of the weights that were asked for.
pub(super) fn told_weight(record: &EndpointRecord, progress: &Progress, variant: &str, revision: u64) -> f64 {
    mixed(record, progress, variant, revision, |variants| desired(variants, variant))
}

fn mixed(
    record: &EndpointRecord,
    progress: &Progress,
    variant: &str,
    revision: u64,
    part: impl Fn(&[VariantRecord]) -> f64,
) -> f64 {
    let is_side = |side: Option<Side>| side.is_some_and(|side| side.revision == revision);
    let old = &record.serving.variants;
    let Some(rollout) = &progress.rollout else {
        return if is_side(progress.serving.get(variant).copied()) { part(old) } else { 0.0 };
    };
    let new = coming(record, progress).map_or(old, |target| &target.variants);
    let Some(group) = rollout.groups.iter().find(|group| group.name == variant) else { return 0.0 };
    let from_old = if is_side(group.old) { (1.0 - rollout.share) * part(old) } else { 0.0 };
    let from_new = if is_side(group.new) { rollout.share * part(new) } else { 0.0 };
    from_old + from_new
}

fn total(variants: &[VariantRecord]) -> f64 {
    variants.iter().map(|variant| variant.desired_weight).sum()
}

fn desired(variants: &[VariantRecord], name: &str) -> f64 {
    let variant = variants.iter().find(|variant| variant.config.variant_name == name);
    variant.map_or(0.0, |variant| variant.desired_weight)
}
