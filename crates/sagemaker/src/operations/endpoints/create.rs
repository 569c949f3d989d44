//! CreateEndpoint.

use isotherm_store::Records;
use serde::Deserialize;
use serde_json::{Value, json};

use super::deployed::deployed;
use crate::arn::ResourceKind;
use crate::error::ServiceError;
use crate::operations::{Call, quotas, tags, typed};
use crate::records::{ENDPOINTS, EndpointRecord, Transition};
use crate::rules;
use crate::shapes::{DeploymentConfig, EndpointStatus, Tag};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CreateEndpoint {
    endpoint_name: String,
    endpoint_config_name: String,
    deployment_config: Option<DeploymentConfig>,
    #[serde(default)]
    tags: Vec<Tag>,
}

pub(super) fn create(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let input: CreateEndpoint = typed(input)?;
    rules::tags::check(&input.tags)?;
    let EndpointRecord { identity, serving, .. } = quotas::write(call, |transaction| {
        let key = call.key(&input.endpoint_name);
        if transaction.get(&ENDPOINTS, &key)?.is_some() {
            return Err(ResourceKind::Endpoint.existing(call.caller, &input.endpoint_name));
        }
        quotas::one_more(call, transaction, &quotas::ENDPOINT)?;
        let serving = deployed(call, transaction, &input.endpoint_config_name)?;
        if let Some(config) = &input.deployment_config {
            rules::deployment::check(config, serving.desired_instances())?;
        }
        let record = EndpointRecord {
            identity: call.identity(ResourceKind::Endpoint, input.endpoint_name),
            modified_at: call.now,
            status: EndpointStatus::Creating,
            failure_reason: None,
            serving,
            transition: Some(Transition::Create { started_at: call.now }),
            last_deployment_config: input.deployment_config,
            left_over: None,
        };
        tags::attach(transaction, ResourceKind::Endpoint, &record.identity, &input.tags)?;
        transaction.put(&ENDPOINTS, &key, &record)?;
        Ok(record)
    })?;
    serving.say_what_runs_otherwise(&identity.name);
    Ok(json!({ "EndpointArn": identity.arn }))
}
