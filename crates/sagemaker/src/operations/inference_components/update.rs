//! UpdateInferenceComponent and UpdateInferenceComponentRuntimeConfig.

use serde::Deserialize;
use serde_json::{Value, json};

use super::plan::plan;
use super::ready_for_change;
use crate::error::ServiceError;
use crate::operations::{Call, invalid, quotas, typed};
use crate::records::{ComponentTransition, INFERENCE_COMPONENTS, InferenceComponentRecord};
use crate::rules::{self, components::adapters_have_no_copies};
use crate::shapes::{
    ComponentDeploymentConfig, ComponentRuntimeConfig, ComponentSpecification, InferenceComponentStatus, Timestamp,
};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UpdateComponent {
    inference_component_name: String,
    specification: Option<ComponentSpecification>,
    specifications: Option<Vec<ComponentSpecification>>,
    runtime_config: Option<ComponentRuntimeConfig>,
    deployment_config: Option<ComponentDeploymentConfig>,
}

pub(super) fn update(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let input: UpdateComponent = typed(input)?;
    quotas::write(call, |transaction| {
        let mut component = call.inference_component(transaction, &input.inference_component_name)?;
        ready_for_change(&component)?;
        if let Some(runtime) = input.runtime_config {
            set_copies(&mut component, runtime)?;
        }
        if let Some(config) = &input.deployment_config {
            rules::deployment::check_component(config, component.desired_copy_count)?;
        }
        let transition = if input.specification.is_none() && input.specifications.is_none() {
            scaling_alone(&input, call.now)?
        } else {
            let given_as_list = input.specifications.is_some();
            let one = input.specification.map(|given| merged(given, component.serving.specifications.first()));
            let specifications = rules::components::specifications(one, input.specifications)?;
            same_kind(&component, &specifications)?;
            let target = plan(call, transaction, specifications, given_as_list)?;
            let deployment_config = input.deployment_config;
            ComponentTransition::Update { target: Box::new(target), deployment_config, started_at: call.now }
        };
        begin(&mut component, transition, call.now);
        transaction.put(&INFERENCE_COMPONENTS, &component.key(), &component)?;
        Ok(json!({ "InferenceComponentArn": component.identity.arn }))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UpdateRuntimeConfig {
    inference_component_name: String,
    desired_runtime_config: ComponentRuntimeConfig,
}

pub(super) fn update_runtime_config(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let UpdateRuntimeConfig { inference_component_name, desired_runtime_config } = typed(input)?;
    quotas::write(call, |transaction| {
        let mut component = call.inference_component(transaction, &inference_component_name)?;
        ready_for_change(&component)?;
        set_copies(&mut component, desired_runtime_config)?;
        begin(&mut component, ComponentTransition::Scale { started_at: call.now }, call.now);
        transaction.put(&INFERENCE_COMPONENTS, &component.key(), &component)?;
        Ok(json!({ "InferenceComponentArn": component.identity.arn }))
    })
}

fn scaling_alone(input: &UpdateComponent, now: Timestamp) -> Result<ComponentTransition, ServiceError> {
    if input.runtime_config.is_none() {
        return Err(invalid("One of Specification, Specifications and RuntimeConfig is required."));
    }
    if input.deployment_config.is_some() {
        return Err(invalid("DeploymentConfig is only supported with Specification or Specifications."));
    }
    Ok(ComponentTransition::Scale { started_at: now })
}

fn set_copies(component: &mut InferenceComponentRecord, runtime: ComponentRuntimeConfig) -> Result<(), ServiceError> {
    if component.base().is_some() {
        return Err(invalid(adapters_have_no_copies()));
    }
    component.desired_copy_count = runtime.copy_count;
    Ok(())
}

fn begin(component: &mut InferenceComponentRecord, transition: ComponentTransition, now: Timestamp) {
    component.status = InferenceComponentStatus::Updating;
    component.failure_reason = None;
    component.modified_at = now;
    component.transition = Some(transition);
}

/// Members that an update leaves out stay as they are; a new model takes the place of an image, and the other way.
fn merged(given: ComponentSpecification, old: Option<&ComponentSpecification>) -> ComponentSpecification {
    let Some(old) = old.cloned() else { return given };
    let given_image = given.container.as_ref().is_some_and(|container| container.image.is_some());
    let old_container = if given.model_name.is_some() { None } else { old.container };
    ComponentSpecification {
        instance_type: given.instance_type.or(old.instance_type),
        model_name: if given_image { given.model_name } else { given.model_name.or(old.model_name) },
        container: given.container.or(old_container),
        startup_parameters: given.startup_parameters.or(old.startup_parameters),
        compute_resource_requirements: given.compute_resource_requirements.or(old.compute_resource_requirements),
        base_inference_component_name: given.base_inference_component_name.or(old.base_inference_component_name),
        data_cache_config: given.data_cache_config.or(old.data_cache_config),
        scheduling_config: given.scheduling_config.or(old.scheduling_config),
    }
}

/// A component stays what it is: a model of its own, or an adapter of the same base.
fn same_kind(
    component: &InferenceComponentRecord,
    specifications: &[ComponentSpecification],
) -> Result<(), ServiceError> {
    rules::components::check(specifications)?;
    let base = specifications.first().and_then(|one| one.base_inference_component_name.as_deref());
    let same = match (base, component.base()) {
        (Some(new), Some(old)) => new.eq_ignore_ascii_case(old),
        (new, old) => new.is_none() && old.is_none(),
    };
    if same { Ok(()) } else { Err(invalid("BaseInferenceComponentName can't be updated.")) }
}
