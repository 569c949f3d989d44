//! What an endpoint's or a component's transition asks for, in the terms of the machine.

use super::plan::Plan;
use super::progress::{Kind, Progress};
use super::rollout::{GroupGoal, begin};
use crate::records::{
    ComponentPlan, ComponentTransition, Deployed, EndpointRecord, InferenceComponentRecord, ModelRecord, Transition,
    VariantRecord,
};
use crate::routing::VARIABLES;
use crate::shapes::{ComponentSpecification, ProductionVariant, Timestamp};

/// Begins what an endpoint's record asks for, unless that is under way. True if something began.
pub(super) fn begin_endpoint(record: &EndpointRecord, progress: &mut Progress) -> bool {
    let Some(transition) = &record.transition else { return false };
    let (kind, started_at) = match transition {
        Transition::Create { started_at } => (Kind::Create, *started_at),
        Transition::Update(update) => (Kind::Update, update.started_at),
        Transition::Adjust { started_at } => (Kind::Adjust, *started_at),
        Transition::Delete { started_at } => (Kind::Delete, *started_at),
    };
    if is_under_way(progress, kind, started_at) {
        return false;
    }
    let config = record.update().and_then(|update| update.deployment_config.as_ref());
    let goals = match transition {
        Transition::Create { .. } => goals(&record.serving, |_| false),
        Transition::Adjust { .. } => goals(&record.serving, |_| true),
        Transition::Update(update) => goals(&update.target, |new| stays(&record.serving, &update.target, new)),
        Transition::Delete { .. } => Vec::new(),
    };
    begin(progress, kind, started_at, &goals, |sizes| Plan::of_endpoint(config, sizes));
    true
}

/// Begins what a component's record asks for, unless that is under way. True if something began.
pub(super) fn begin_component(record: &InferenceComponentRecord, progress: &mut Progress) -> bool {
    let Some(transition) = &record.transition else { return false };
    let (kind, started_at) = match transition {
        ComponentTransition::Create { started_at } => (Kind::Create, *started_at),
        ComponentTransition::Update { started_at, .. } => (Kind::Update, *started_at),
        ComponentTransition::Scale { started_at } => (Kind::Adjust, *started_at),
        ComponentTransition::Delete { started_at } => (Kind::Delete, *started_at),
    };
    if is_under_way(progress, kind, started_at) {
        return false;
    }
    let (in_place, config) = match transition {
        ComponentTransition::Create { .. } | ComponentTransition::Delete { .. } => (false, None),
        ComponentTransition::Scale { .. } => (true, None),
        ComponentTransition::Update { target, deployment_config, .. } => {
            (runs_the_same_component(&record.serving, target), deployment_config.as_ref())
        }
    };
    let goal = GroupGoal { name: record.identity.name.clone(), count: record.desired_copy_count, in_place };
    let goals: &[GroupGoal] = if kind == Kind::Delete { &[] } else { &[goal] };
    begin(progress, kind, started_at, goals, |sizes| match sizes {
        [size] => Plan::of_component(config, *size),
        _ => Plan::at_once(),
    });
    true
}

/// Whether the change is the one that the record asked for at that time.
fn is_under_way(progress: &Progress, kind: Kind, started_at: Timestamp) -> bool {
    progress.rollout.as_ref().is_some_and(|rollout| (rollout.kind, rollout.started_at) == (kind, started_at))
}

fn goals(deployed: &Deployed, in_place: impl Fn(&VariantRecord) -> bool) -> Vec<GroupGoal> {
    let goal = |variant: &VariantRecord| GroupGoal {
        name: variant.config.variant_name.clone(),
        count: variant.desired_instance_count,
        in_place: in_place(variant),
    };
    deployed.all_variants().map(goal).collect()
}

/// Whether the instances of a variant can stay when its configuration becomes this one.
fn stays(old_in: &Deployed, new_in: &Deployed, new: &VariantRecord) -> bool {
    let old = old_in.all_variants().find(|old| old.config.variant_name == new.config.variant_name);
    old.is_some_and(|old| {
        what_runs(&old.config) == what_runs(&new.config) && models_of(old_in, old) == models_of(new_in, new)
    })
}

/// A configuration without what can change while its instances run.
fn what_runs(config: &ProductionVariant) -> ProductionVariant {
    ProductionVariant {
        initial_instance_count: None,
        initial_variant_weight: None,
        routing_config: None,
        managed_instance_scaling: None,
        ..config.clone()
    }
}

fn models_of(deployed: &Deployed, variant: &VariantRecord) -> Vec<ModelRecord> {
    let pools = variant.config.instance_pools.iter().flatten();
    let names = variant.config.model_name.iter().chain(pools.filter_map(|pool| pool.model_name_override.as_ref()));
    names.filter_map(|name| deployed.model(name)).map(without_routing).collect()
}

/// A model without what only says how requests are routed.
fn without_routing(model: &ModelRecord) -> ModelRecord {
    let mut model = model.clone();
    let containers = model.settings.primary_container.iter_mut().chain(model.settings.containers.iter_mut().flatten());
    for container in containers {
        container.environment.retain(|name, _| !VARIABLES.contains(&name.as_str()));
    }
    model
}

fn runs_the_same_component(old: &ComponentPlan, new: &ComponentPlan) -> bool {
    let specification = |one: &ComponentSpecification| {
        let mut one = one.clone();
        one.scheduling_config = None;
        if let Some(container) = &mut one.container {
            container.environment.retain(|name, _| !VARIABLES.contains(&name.as_str()));
        }
        one
    };
    let what_runs = |plan: &ComponentPlan| {
        let specifications: Vec<_> = plan.specifications.iter().map(specification).collect();
        (specifications, plan.models.iter().map(without_routing).collect::<Vec<_>>())
    };
    what_runs(old) == what_runs(new)
}
