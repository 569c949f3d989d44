//! DescribeInferenceComponent.

use serde_json::{Value, json};

use super::NamedComponent;
use crate::error::ServiceError;
use crate::operations::endpoints::{Members, shortened};
use crate::operations::{Call, typed};
use crate::records::InferenceComponentRecord;
use crate::shapes::{ComponentContainer, ComponentSpecification, DeployedImage};

pub(super) fn describe(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let NamedComponent { inference_component_name } = typed(input)?;
    let component = call.store.read(|records| call.inference_component(records, &inference_component_name))?;
    Ok(description(&component))
}

fn description(component: &InferenceComponentRecord) -> Value {
    let InferenceComponentRecord { identity, serving, .. } = component;
    let mut answer = Members::default();
    answer.put("InferenceComponentName", &identity.name);
    answer.put("InferenceComponentArn", &identity.arn);
    answer.put("EndpointName", &component.endpoint_name);
    answer.put("EndpointArn", &component.endpoint_arn);
    answer.put("VariantName", &component.variant_name);
    answer.put("InferenceComponentStatus", component.status);
    answer.put("FailureReason", component.failure_reason.as_deref().map(shortened));
    answer.put("CreationTime", identity.created_at);
    answer.put("LastModifiedTime", component.modified_at);
    answer.put("LastDeploymentConfig", &component.last_deployment_config);
    let summaries = serving.specifications.iter().map(|one| specification(one, component.deployed_image.as_ref()));
    let summaries: Vec<Value> = summaries.collect();
    if serving.given_as_list {
        answer.put("Specifications", summaries);
    } else {
        answer.put("Specification", summaries.into_iter().next());
    }
    if component.base().is_none() {
        answer.put("RuntimeConfig", runtime(component));
    }
    answer.into()
}

fn runtime(component: &InferenceComponentRecord) -> Value {
    let mut answer = Members::default();
    answer.put("DesiredCopyCount", component.desired_copy_count);
    answer.put("CurrentCopyCount", component.current_copy_count);
    answer.put("PlacementStatus", Some(&component.placement).filter(|placement| !placement.is_empty()));
    answer.into()
}

fn specification(specification: &ComponentSpecification, deployed: Option<&DeployedImage>) -> Value {
    let mut answer = Members::default();
    answer.put("InstanceType", &specification.instance_type);
    answer.put("ModelName", &specification.model_name);
    answer.put("Container", specification.container.as_ref().map(|one| container(one, deployed)));
    answer.put("StartupParameters", &specification.startup_parameters);
    answer.put("ComputeResourceRequirements", &specification.compute_resource_requirements);
    answer.put("BaseInferenceComponentName", &specification.base_inference_component_name);
    answer.put("DataCacheConfig", &specification.data_cache_config);
    answer.put("SchedulingConfig", &specification.scheduling_config);
    answer.into()
}

fn container(container: &ComponentContainer, deployed: Option<&DeployedImage>) -> Value {
    let mut answer = Members::default();
    let of_image = |image: &String| json!({ "SpecifiedImage": image, "ResolvedImage": image });
    let image = container.image.as_ref();
    let resolved = deployed.filter(|deployed| image.is_some() && deployed.specified_image.as_ref() == image);
    answer.put("DeployedImage", resolved.map(|deployed| json!(deployed)).or_else(|| image.map(of_image)));
    answer.put("ArtifactUrl", &container.artifact_url);
    answer.put("Environment", Some(&container.environment).filter(|environment| !environment.is_empty()));
    answer.put("ContainerMetricsConfig", &container.container_metrics_config);
    answer.into()
}
