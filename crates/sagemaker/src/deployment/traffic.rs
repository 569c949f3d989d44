//! How much of an endpoint's traffic each revision of each variant gets while a change moves it.

use super::orders::coming;
use super::progress::{GroupChange, Progress, Side, Unit};
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
    let of_old = |group: &GroupChange| held_of_old(record, progress, group, revision);
    mixed(record, progress, variant, revision, part, of_old) * ((1.0 - share) * total(old) + share * total(new))
}

/// The weight of a revision of a variant as people are told it: on the scale of the weights that were asked for.
pub(super) fn told_weight(record: &EndpointRecord, progress: &Progress, variant: &str, revision: u64) -> f64 {
    let of_old = |group: &GroupChange| f64::from(u8::from(group.old.is_some_and(|old| old.revision == revision)));
    mixed(record, progress, variant, revision, |variants| desired(variants, variant), of_old)
}

fn mixed(
    record: &EndpointRecord,
    progress: &Progress,
    variant: &str,
    revision: u64,
    part: impl Fn(&[VariantRecord]) -> f64,
    of_old: impl Fn(&GroupChange) -> f64,
) -> f64 {
    let is_side = |side: Option<Side>| side.is_some_and(|side| side.revision == revision);
    let old = &record.serving.variants;
    let Some(rollout) = &progress.rollout else {
        return if is_side(progress.serving.get(variant).copied()) { part(old) } else { 0.0 };
    };
    let new = coming(record, progress).map_or(old, |target| &target.variants);
    let Some(group) = rollout.groups.iter().find(|group| group.name == variant) else { return 0.0 };
    let from_old = of_old(group) * (1.0 - rollout.share) * part(old);
    let from_new = if is_side(group.new) { rollout.share * part(new) } else { 0.0 };
    from_old + from_new
}

/// How much of what the old configuration gets falls to a revision of a variant. What an update left over that failed
/// both ways shares it, instance by instance, until a change ends it: what there is of the old one may be too little for
/// all.
fn held_of_old(record: &EndpointRecord, progress: &Progress, group: &GroupChange, revision: u64) -> f64 {
    let Some(old) = group.old.map(|old| old.revision) else { return 0.0 };
    let serving = |revision: u64| {
        let is_one = |unit: &&Unit| unit.group == group.name && unit.revision == revision && unit.serves();
        progress.units.iter().filter(is_one).count() as f64
    };
    let is_new = |revision: u64| group.new.is_some_and(|new| new.revision == revision);
    let left = record.left_over.as_ref().map(|left| left.revision).filter(|left| *left != old && !is_new(*left));
    let (of_old, of_left) = (serving(old), left.map_or(0.0, serving));
    let share_of_left = if of_left > 0.0 { of_left / (of_old + of_left) } else { 0.0 };
    if revision == old {
        1.0 - share_of_left
    } else if left == Some(revision) {
        share_of_left
    } else {
        0.0
    }
}

fn total(variants: &[VariantRecord]) -> f64 {
    variants.iter().map(|variant| variant.desired_weight).sum()
}

fn desired(variants: &[VariantRecord], name: &str) -> f64 {
    let variant = variants.iter().find(|variant| variant.config.variant_name == name);
    variant.map_or(0.0, |variant| variant.desired_weight)
}
