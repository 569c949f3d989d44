//! DescribeEndpoint.

use serde_json::{Map, Value, json};

use super::NamedEndpoint;
use crate::error::ServiceError;
use crate::operations::{Call, typed};
use crate::records::{Deployed, EndpointRecord, Update, VariantRecord};
use crate::shapes::Echoed;

/// The longest reason that the service tells, in characters.
const LONGEST_REASON: usize = 1_024;

pub(super) fn describe(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let NamedEndpoint { endpoint_name } = typed(input)?;
    let endpoint = call.store.read(|records| call.endpoint(records, &endpoint_name))?;
    Ok(description(&endpoint))
}

fn description(endpoint: &EndpointRecord) -> Value {
    let EndpointRecord { identity, serving, .. } = endpoint;
    let mut answer = Members::default();
    answer.put("EndpointName", &identity.name);
    answer.put("EndpointArn", &identity.arn);
    answer.put("EndpointConfigName", &serving.config_name);
    answer.put("EndpointStatus", endpoint.status);
    answer.put("CreationTime", identity.created_at);
    answer.put("LastModifiedTime", endpoint.modified_at);
    answer.put("FailureReason", endpoint.failure_reason.as_deref().map(shortened));
    answer.put("ProductionVariants", summaries(&serving.variants, variant));
    answer.put("ShadowProductionVariants", summaries(&serving.shadow_variants, variant));
    answer.put("DataCaptureConfig", serving.settings.data_capture_config.as_ref().map(data_capture));
    answer.put("AsyncInferenceConfig", &serving.settings.async_inference_config);
    answer.put("ExplainerConfig", &serving.settings.explainer_config);
    answer.put("MetricsConfig", &serving.settings.metrics_config);
    answer.put("CrossRegionTrafficConfig", &serving.settings.cross_region_traffic_config);
    answer.put("LastDeploymentConfig", &endpoint.last_deployment_config);
    answer.put("PendingDeploymentSummary", endpoint.update().map(pending));
    answer.into()
}

fn pending(update: &Update) -> Value {
    let Update { target, started_at, .. } = update;
    let Deployed { config_name, variants, shadow_variants, .. } = target;
    let mut answer = Members::default();
    answer.put("EndpointConfigName", config_name);
    answer.put("StartTime", started_at);
    answer.put("ProductionVariants", summaries(variants, pending_variant));
    answer.put("ShadowProductionVariants", summaries(shadow_variants, pending_variant));
    answer.into()
}

fn summaries(variants: &[VariantRecord], summary: fn(&VariantRecord) -> Value) -> Option<Vec<Value>> {
    (!variants.is_empty()).then(|| variants.iter().map(summary).collect())
}

fn variant(record: &VariantRecord) -> Value {
    variant_members(record).into()
}

fn pending_variant(record: &VariantRecord) -> Value {
    let mut answer = variant_members(record);
    answer.put("InstanceType", &record.config.instance_type);
    answer.put("AcceleratorType", &record.config.accelerator_type);
    answer.into()
}

fn variant_members(record: &VariantRecord) -> Members {
    let config = &record.config;
    let on_instances = config.serverless_config.is_none();
    let mut answer = Members::default();
    answer.put("VariantName", &config.variant_name);
    answer.put("DeployedImages", some(&record.deployed_images));
    answer.put("CurrentWeight", record.current_weight);
    answer.put("DesiredWeight", record.desired_weight);
    answer.put("CurrentInstanceCount", on_instances.then_some(record.current_instance_count));
    answer.put("DesiredInstanceCount", on_instances.then_some(record.desired_instance_count));
    answer.put("InstancePools", instance_pools(record));
    answer.put("VariantStatus", some(&record.status));
    answer.put("CurrentServerlessConfig", &record.current_serverless);
    answer.put("DesiredServerlessConfig", &record.desired_serverless);
    answer.put("ManagedInstanceScaling", &config.managed_instance_scaling);
    answer.put("RoutingConfig", &config.routing_config);
    answer.put("CapacityReservationConfig", &config.capacity_reservation_config);
    answer.put("AcceleratorPartitionLayouts", &config.accelerator_partition_layouts);
    answer
}

/// Instances come from the first pool: a provider always delivers, or says why it does not.
fn instance_pools(record: &VariantRecord) -> Option<Vec<Value>> {
    let pools = record.config.instance_pools.as_ref()?;
    let first = pools.iter().map(|pool| pool.priority).min();
    let count = |priority| if Some(priority) == first { record.current_instance_count } else { 0 };
    let summary = |pool: &crate::shapes::InstancePool| json!({ "InstanceType": pool.instance_type, "CurrentInstanceCount": count(pool.priority) });
    Some(pools.iter().map(summary).collect())
}

/// Nothing is captured, and the description says so.
fn data_capture(config: &Echoed) -> Value {
    json!({
        "EnableCapture": config.get("EnableCapture").and_then(Value::as_bool).unwrap_or(false),
        "CaptureStatus": "Stopped",
        "CurrentSamplingPercentage": config.get("InitialSamplingPercentage"),
        "DestinationS3Uri": config.get("DestinationS3Uri"),
        "KmsKeyId": config.get("KmsKeyId").and_then(Value::as_str).unwrap_or_default(),
    })
}

pub(in crate::operations) fn shortened(reason: &str) -> String {
    reason.chars().take(LONGEST_REASON).collect()
}

fn some<T>(list: &[T]) -> Option<&[T]> {
    (!list.is_empty()).then_some(list)
}

/// The members of an answer; those without a value are left out.
#[derive(Default)]
pub(in crate::operations) struct Members(Map<String, Value>);

impl Members {
    pub(in crate::operations) fn put(&mut self, name: &str, value: impl serde::Serialize) {
        // Plain structures of text, numbers and lists always become JSON.
        let value = json!(value);
        if !value.is_null() {
            self.0.insert(name.to_owned(), value);
        }
    }
}

impl From<Members> for Value {
    fn from(members: Members) -> Value {
        Value::Object(members.0)
    }
}
