//! UpdateEndpoint.

use serde::Deserialize;
use serde_json::{Value, json};

use super::deployed::deployed;
use super::ready_for_change;
use crate::arn::ResourceKind;
use crate::error::ServiceError;
use crate::operations::{Call, invalid, quotas, typed};
use crate::records::{Deployed, ENDPOINTS, EndpointRecord, InferenceComponentRecord, Transition, Update};
use crate::rules;
use crate::shapes::{DeploymentConfig, EndpointStatus, VariantProperty, VariantPropertyType};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UpdateEndpoint {
    endpoint_name: String,
    endpoint_config_name: String,
    #[serde(default)]
    retain_all_variant_properties: bool,
    #[serde(default)]
    exclude_retained_variant_properties: Vec<VariantProperty>,
    deployment_config: Option<DeploymentConfig>,
    #[serde(default)]
    retain_deployment_config: bool,
}

pub(super) fn update(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let input: UpdateEndpoint = typed(input)?;
    let endpoint = quotas::write(call, |transaction| {
        let mut endpoint = call.endpoint(transaction, &input.endpoint_name)?;
        ready_for_change(&endpoint)?;
        another_configuration(call, &endpoint, &input.endpoint_config_name)?;
        call.endpoint_config(transaction, &endpoint.serving.config_name)?;
        let mut target = deployed(call, transaction, &input.endpoint_config_name)?;
        compatible(&endpoint.serving, &target, &call.components_of(transaction, &input.endpoint_name)?)?;
        retain(&input, &endpoint.serving, &mut target)?;
        let deployment_config = deployment_config(&input, &endpoint, target.desired_instances())?;
        endpoint.status = EndpointStatus::Updating;
        endpoint.failure_reason = None;
        endpoint.modified_at = call.now;
        let update = Update { target, deployment_config, started_at: call.now };
        endpoint.transition = Some(Transition::Update(Box::new(update)));
        transaction.put(&ENDPOINTS, &endpoint.key(), &endpoint)?;
        Ok(endpoint)
    })?;
    if let Some(update) = endpoint.update() {
        update.target.say_what_runs_otherwise(&endpoint.identity.name);
    }
    Ok(json!({ "EndpointArn": endpoint.identity.arn }))
}

fn another_configuration(call: &Call<'_>, endpoint: &EndpointRecord, name: &str) -> Result<(), ServiceError> {
    if !endpoint.serving.config_name.eq_ignore_ascii_case(name) {
        return Ok(());
    }
    Err(invalid(format!(
        "Cannot update endpoint \"{}\" with the endpoint configuration \"{}\" because it has it already.",
        endpoint.identity.arn,
        ResourceKind::EndpointConfig.arn(call.caller, name)
    )))
}

/// An endpoint stays what it is, a host of models or of inference components, and keeps what lies on it.
fn compatible(
    serving: &Deployed,
    target: &Deployed,
    components: &[InferenceComponentRecord],
) -> Result<(), ServiceError> {
    if serving.has_components() != target.has_components() {
        return Err(invalid(
            "An endpoint can't change between variants with a ModelName and variants for inference components.",
        ));
    }
    let find = |name: &str| target.variants.iter().find(|one| one.config.variant_name.eq_ignore_ascii_case(name));
    let homeless = components.iter().find_map(|component| {
        let variant = component.variant_name.as_deref()?;
        find(variant).is_none().then_some((variant, &component.identity.arn))
    });
    if let Some((variant, arn)) = homeless {
        return Err(invalid(format!(
            "The variant \"{variant}\" hosts the inference component \"{arn}\" and is not present within endpoint \
             configuration \"{}\".",
            target.config_name
        )));
    }
    for variant in &serving.variants {
        let name = &variant.config.variant_name;
        let layouts = |layouts: &crate::shapes::ProductionVariant| layouts.accelerator_partition_layouts.clone();
        if find(name).is_some_and(|other| layouts(&other.config) != layouts(&variant.config)) {
            return Err(invalid(format!("AcceleratorPartitionLayouts of the variant \"{name}\" can't be updated.")));
        }
    }
    Ok(())
}

/// Takes over from the running variants what the request says to retain.
fn retain(input: &UpdateEndpoint, serving: &Deployed, target: &mut Deployed) -> Result<(), ServiceError> {
    if !input.retain_all_variant_properties {
        if input.exclude_retained_variant_properties.is_empty() {
            return Ok(());
        }
        return Err(invalid(
            "ExcludeRetainedVariantProperties is only supported with RetainAllVariantProperties set to true.",
        ));
    }
    let retained = |kind: VariantPropertyType| {
        !input.exclude_retained_variant_properties.iter().any(|one| one.variant_property_type == kind)
    };
    if retained(VariantPropertyType::DataCaptureConfig) {
        target.settings.data_capture_config.clone_from(&serving.settings.data_capture_config);
    }
    for variant in target.variants.iter_mut().chain(&mut target.shadow_variants) {
        let name = &variant.config.variant_name;
        let Some(old) = serving.all_variants().find(|old| old.config.variant_name.eq_ignore_ascii_case(name)) else {
            continue;
        };
        if retained(VariantPropertyType::DesiredInstanceCount) {
            variant.desired_instance_count = old.desired_instance_count;
        }
        if retained(VariantPropertyType::DesiredWeight) {
            variant.desired_weight = old.desired_weight;
        }
    }
    Ok(())
}

fn deployment_config(
    input: &UpdateEndpoint,
    endpoint: &EndpointRecord,
    instances: u32,
) -> Result<Option<DeploymentConfig>, ServiceError> {
    if !input.retain_deployment_config {
        if let Some(config) = &input.deployment_config {
            rules::deployment::check(config, instances)?;
        }
        return Ok(input.deployment_config.clone());
    }
    if input.deployment_config.is_some() {
        return Err(invalid("DeploymentConfig is not supported with RetainDeploymentConfig set to true."));
    }
    Ok(endpoint.last_deployment_config.clone())
}
