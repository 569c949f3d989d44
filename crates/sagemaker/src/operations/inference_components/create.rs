//! CreateInferenceComponent.

use isotherm_store::Records;
use serde::Deserialize;
use serde_json::{Value, json};

use super::plan::plan;
use crate::arn::ResourceKind;
use crate::error::ServiceError;
use crate::operations::{Call, invalid, quotas, tags, typed};
use crate::records::{ComponentTransition, EndpointRecord, INFERENCE_COMPONENTS, InferenceComponentRecord};
use crate::rules::{self, components::ComponentKind};
use crate::shapes::{
    ComponentRuntimeConfig, ComponentSpecification, DeployedImage, EndpointStatus, InferenceComponentStatus, Tag,
};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CreateComponent {
    inference_component_name: String,
    endpoint_name: String,
    variant_name: Option<String>,
    specification: Option<ComponentSpecification>,
    specifications: Option<Vec<ComponentSpecification>>,
    runtime_config: Option<ComponentRuntimeConfig>,
    #[serde(default)]
    tags: Vec<Tag>,
}

pub(super) fn create(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let input: CreateComponent = typed(input)?;
    rules::tags::check(&input.tags)?;
    let given_as_list = input.specifications.is_some();
    let specifications = rules::components::specifications(input.specification, input.specifications)?;
    let kind = rules::components::check(&specifications)?;
    rules::components::check_copies(kind, input.runtime_config)?;
    quotas::write(call, |transaction| {
        let key = call.key(&input.inference_component_name);
        if transaction.get(&INFERENCE_COMPONENTS, &key)?.is_some() {
            return Err(ResourceKind::InferenceComponent.existing(call.caller, &input.inference_component_name));
        }
        quotas::one_more(call, transaction, &quotas::INFERENCE_COMPONENT)?;
        let endpoint = call.endpoint(transaction, &input.endpoint_name)?;
        ready_to_host(&endpoint)?;
        let serving = plan(call, transaction, specifications, given_as_list)?;
        let asked = input.variant_name.as_deref();
        let variant_name = match kind {
            ComponentKind::Model => host(&endpoint, asked)?,
            ComponentKind::Adapter => host_of_base(call, transaction, &endpoint, &serving.specifications, asked)?,
        };
        let record = InferenceComponentRecord {
            identity: call.identity(ResourceKind::InferenceComponent, input.inference_component_name),
            modified_at: call.now,
            endpoint_name: endpoint.identity.name,
            endpoint_arn: endpoint.identity.arn,
            variant_name,
            status: InferenceComponentStatus::Creating,
            failure_reason: None,
            deployed_image: serving.image().map(|image| DeployedImage {
                specified_image: Some(image.to_owned()),
                resolved_image: Some(image.to_owned()),
                resolution_time: Some(call.now),
            }),
            serving,
            desired_copy_count: input.runtime_config.map_or(0, |runtime| runtime.copy_count),
            current_copy_count: 0,
            placement: Vec::new(),
            transition: Some(ComponentTransition::Create { started_at: call.now }),
            last_deployment_config: None,
            left_over: None,
        };
        tags::attach(transaction, ResourceKind::InferenceComponent, &record.identity, &input.tags)?;
        transaction.put(&INFERENCE_COMPONENTS, &key, &record)?;
        Ok(json!({ "InferenceComponentArn": record.identity.arn }))
    })
}

fn ready_to_host(endpoint: &EndpointRecord) -> Result<(), ServiceError> {
    let arn = &endpoint.identity.arn;
    if !endpoint.serving.has_components() {
        return Err(invalid(format!(
            "Endpoint \"{arn}\" can't host inference components because its variants have a ModelName."
        )));
    }
    match endpoint.status {
        EndpointStatus::InService
        | EndpointStatus::Updating
        | EndpointStatus::SystemUpdating
        | EndpointStatus::RollingBack => Ok(()),
        status => Err(invalid(format!(
            "Cannot create inference component on endpoint \"{arn}\" while its status is {}. Wait until it is \
             InService.",
            status.as_str()
        ))),
    }
}

/// The variant that hosts a model; one need not be named where there is only one.
fn host(endpoint: &EndpointRecord, asked: Option<&str>) -> Result<Option<String>, ServiceError> {
    let variants = &endpoint.serving.variants;
    let found = match asked {
        Some(name) => variants.iter().find(|one| one.config.variant_name.eq_ignore_ascii_case(name)),
        None => variants.first().filter(|_| variants.len() == 1),
    };
    let config = &endpoint.serving.config_name;
    match (found, asked) {
        (Some(variant), _) => Ok(Some(variant.config.variant_name.clone())),
        (None, Some(name)) => Err(invalid(format!(
            "The variant name(s) \"{name}\" is/are not present within endpoint configuration \"{config}\"."
        ))),
        (None, None) => Err(invalid(format!(
            "VariantName is required because endpoint configuration \"{config}\" has {} variants.",
            variants.len()
        ))),
    }
}

/// An adapter lies where its base component does.
fn host_of_base(
    call: &Call<'_>,
    records: &impl Records,
    endpoint: &EndpointRecord,
    specifications: &[ComponentSpecification],
    asked: Option<&str>,
) -> Result<Option<String>, ServiceError> {
    let name = specifications.first().and_then(|one| one.base_inference_component_name.as_deref()).unwrap_or_default();
    let base = call.inference_component(records, name)?;
    let arn = &base.identity.arn;
    if !base.endpoint_name.eq_ignore_ascii_case(&endpoint.identity.name) {
        return Err(invalid(format!(
            "The base inference component \"{arn}\" is on endpoint \"{}\", not on \"{}\".",
            base.endpoint_arn, endpoint.identity.arn
        )));
    }
    if base.base().is_some() {
        return Err(invalid(format!("Inference component \"{arn}\" is an adapter and can't be the base of another.")));
    }
    if matches!(base.status, InferenceComponentStatus::Deleting | InferenceComponentStatus::Failed) {
        let status = base.status.as_str();
        return Err(invalid(format!(
            "The base inference component \"{arn}\" can't hold adapters: its status is {status}."
        )));
    }
    let elsewhere =
        asked.filter(|name| base.variant_name.as_deref().is_none_or(|host| !host.eq_ignore_ascii_case(name)));
    match elsewhere {
        Some(name) => Err(invalid(format!("The base inference component \"{arn}\" is not on the variant \"{name}\"."))),
        None => Ok(base.variant_name),
    }
}
