//! What an endpoint's and a component's record say of what there is.

use std::collections::BTreeMap;

use super::progress::{GroupChange, Kind, Progress, Rollout, Side, Stage, Unit};
use super::rollout::End;
use super::traffic::told_weight;
use crate::records::{
    ComponentTransition, EndpointRecord, InferenceComponentRecord, LeftOver, Transition, VariantRecord,
};
use crate::routing;
use crate::shapes::{
    EndpointStatus, InferenceComponentStatus, PlacementStatus, Timestamp, VariantStage, VariantStatus,
};

/// The longest reason that SageMaker's API gives, in characters.
const LONGEST_REASON: usize = 1_024;

/// Writes counts, weights and what happens to variants into an endpoint's record.
pub(super) fn report_endpoint(record: &mut EndpointRecord, progress: &Progress, runs: impl Fn(&Unit) -> bool) {
    let rollout = progress.rollout.as_ref().filter(|rollout| rollout.kind != Kind::Move);
    if rollout.is_some_and(|rollout| rollout.kind == Kind::Update && rollout.back.is_some())
        && record.status == EndpointStatus::Updating
    {
        record.status = EndpointStatus::RollingBack;
    }
    let described = record.clone();
    let of = |variant: &mut VariantRecord,
              side: fn(&GroupChange) -> Option<Side>,
              stage: fn(&Rollout, &GroupChange) -> Option<VariantStage>| {
        let name = variant.config.variant_name.clone();
        let group = rollout.and_then(|rollout| Some((rollout, rollout.groups.iter().find(|it| it.name == name)?)));
        let side = group.map_or_else(|| progress.serving.get(&name).copied(), |(_, group)| side(group));
        let revision = side.map(|side| side.revision);
        variant.current_instance_count = revision.map_or(0, |revision| in_service(progress, &name, revision, &runs));
        variant.current_weight = revision.map_or(0.0, |revision| told_weight(&described, progress, &name, revision));
        let running = variant.current_instance_count > 0;
        variant.current_serverless = variant.desired_serverless.clone().filter(|_| running);
        let stage = group.and_then(|(rollout, group)| Some((rollout, stage(rollout, group)?)));
        let status = match stage {
            Some((rollout, stage)) => Some(status(stage, since(rollout), variant)),
            None => revision.and_then(|_| lasting(described.modified_at, variant)),
        };
        variant.status = status.into_iter().collect();
    };
    // What is being created serves on the new side: there is no old one.
    let is_creation = rollout.is_some_and(|rollout| rollout.kind == Kind::Create);
    let serving = record.serving.variants.iter_mut().chain(&mut record.serving.shadow_variants);
    for variant in serving {
        let side: fn(&GroupChange) -> Option<Side> = if is_creation { |group| group.new } else { |group| group.old };
        of(variant, side, stage_of_old);
    }
    if let Some(Transition::Update(update)) = &mut record.transition {
        for variant in update.target.variants.iter_mut().chain(&mut update.target.shadow_variants) {
            of(variant, |group| group.new, stage_of_new);
        }
    }
}

/// How many instances of a revision of a variant answer.
fn in_service(progress: &Progress, variant: &str, revision: u64, runs: impl Fn(&Unit) -> bool) -> u32 {
    let is_one = |unit: &&Unit| unit.group == variant && unit.revision == revision && unit.serves() && runs(unit);
    u32::try_from(progress.units.iter().filter(is_one).count()).unwrap_or(u32::MAX)
}

/// What happens to a variant that serves when a change begins.
fn stage_of_old(rollout: &Rollout, group: &GroupChange) -> Option<VariantStage> {
    match (rollout.kind, rollout.stage) {
        (_, Stage::Stuck) | (Kind::Move, _) => None,
        (Kind::Create, _) => Some(VariantStage::Creating),
        (Kind::Delete, _) => Some(VariantStage::Deleting),
        (Kind::Update, Stage::Retiring) if rollout.back.is_none() && !group.is_in_place() => {
            Some(VariantStage::Deleting)
        }
        (Kind::Adjust | Kind::Update, _) => Some(VariantStage::Updating),
    }
}

/// What happens to a variant that a change brings.
fn stage_of_new(rollout: &Rollout, group: &GroupChange) -> Option<VariantStage> {
    match rollout.stage {
        Stage::Stuck => None,
        _ if rollout.back.is_some() => Some(VariantStage::Deleting),
        _ if group.is_in_place() => Some(VariantStage::Updating),
        Stage::Provisioning if rollout.step == 0 => Some(VariantStage::Creating),
        Stage::Provisioning => Some(VariantStage::ActivatingTraffic),
        Stage::Baking { .. } | Stage::Waiting { .. } => Some(VariantStage::Baking),
        Stage::Retiring => None,
    }
}

fn since(rollout: &Rollout) -> Timestamp {
    match rollout.stage {
        Stage::Baking { since } | Stage::Waiting { since } => since,
        Stage::Provisioning | Stage::Retiring | Stage::Stuck => rollout.started_at,
    }
}

fn status(status: VariantStage, since: Timestamp, variant: &VariantRecord) -> VariantStatus {
    let status_message = routing::runs_otherwise(variant).map(str::to_owned);
    VariantStatus { status, status_message, start_time: Some(since) }
}

/// What is to be said of a variant for as long as it serves.
fn lasting(since: Timestamp, variant: &VariantRecord) -> Option<VariantStatus> {
    routing::runs_otherwise(variant).map(|_| status(VariantStage::InService, since, variant))
}

/// Writes how a change ended into an endpoint's record. Not for deletions: those end with the record.
pub(super) fn finish_endpoint(record: &mut EndpointRecord, end: &End, progress: &Progress, now: Timestamp) {
    let transition = record.transition.take();
    record.left_over = None;
    record.modified_at = now;
    record.failure_reason = match end {
        End::Done => None,
        End::RolledBack(reason) | End::Stuck(reason) => Some(shortened(reason)),
    };
    record.status = match (&transition, end) {
        (Some(Transition::Create { .. }), End::RolledBack(_) | End::Stuck(_)) => EndpointStatus::Failed,
        (Some(Transition::Update(_)), End::Stuck(_)) => EndpointStatus::UpdateRollbackFailed,
        _ => EndpointStatus::InService,
    };
    match (transition, end) {
        (Some(Transition::Update(update)), End::Done) => {
            record.serving = update.target;
            if update.deployment_config.is_some() {
                record.last_deployment_config = update.deployment_config;
            }
        }
        (Some(Transition::Update(update)), End::Stuck(_)) => {
            let (target, revision) = (update.target, progress.last_revision);
            record.left_over = Some(Box::new(LeftOver { target, revision }));
        }
        _ => {}
    }
}

/// Takes over the counts that came true where more was wanted.
pub(super) fn settle_for(record: &mut EndpointRecord, serving: &BTreeMap<String, Side>) {
    for variant in record.serving.variants.iter_mut().chain(&mut record.serving.shadow_variants) {
        if let Some(side) = serving.get(&variant.config.variant_name) {
            variant.desired_instance_count = side.count;
        }
    }
}

/// Writes counts and places into a component's record.
pub(super) fn report_component(record: &mut InferenceComponentRecord, places: &[String]) {
    record.current_copy_count = u32::try_from(places.len()).unwrap_or(u32::MAX);
    let mut counts: BTreeMap<&String, u32> = BTreeMap::new();
    for place in places {
        *counts.entry(place).or_default() += 1;
    }
    let placement =
        |(kind, count): (&String, u32)| PlacementStatus { instance_type: kind.clone(), current_copy_count: count };
    record.placement = counts.into_iter().map(placement).collect();
}

/// Writes how a change ended into a component's record. Not for deletions: those end with the record.
pub(super) fn finish_component(record: &mut InferenceComponentRecord, end: &End, progress: &Progress, now: Timestamp) {
    let transition = record.transition.take();
    record.left_over = None;
    record.modified_at = now;
    record.failure_reason = match end {
        End::Done => None,
        End::RolledBack(reason) | End::Stuck(reason) => Some(shortened(reason)),
    };
    record.status = match (&transition, end) {
        (Some(ComponentTransition::Create { .. }), End::RolledBack(_) | End::Stuck(_)) | (_, End::Stuck(_)) => {
            InferenceComponentStatus::Failed
        }
        _ => InferenceComponentStatus::InService,
    };
    match (transition, end) {
        (Some(ComponentTransition::Update { target, deployment_config, .. }), End::Done) => {
            record.serving = *target;
            if deployment_config.is_some() {
                record.last_deployment_config = deployment_config;
            }
        }
        (Some(ComponentTransition::Update { .. } | ComponentTransition::Scale { .. }), End::RolledBack(_)) => {
            let side = progress.serving.get(&record.identity.name);
            record.desired_copy_count = side.map_or(0, |side| side.count);
        }
        (Some(ComponentTransition::Update { target, .. }), End::Stuck(_)) if record.base().is_none() => {
            record.left_over = Some(Box::new(LeftOver { target: *target, revision: progress.last_revision }));
        }
        _ => {}
    }
}

fn shortened(reason: &str) -> String {
    if reason.chars().count() <= LONGEST_REASON {
        return reason.to_owned();
    }
    reason.chars().take(LONGEST_REASON - 1).chain(['…']).collect()
}
