//! UpdateEndpointWeightsAndCapacities.

use std::collections::HashSet;

use isotherm_store::{StoreError, Transaction};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ready_for_change;
use crate::error::ServiceError;
use crate::operations::{Call, invalid, quotas, typed};
use crate::records::{ENDPOINTS, EndpointRecord, Transition, VariantRecord};
use crate::shapes::{DesiredWeightAndCapacity, Echoed, EndpointStatus};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Adjust {
    endpoint_name: String,
    desired_weights_and_capacities: Vec<DesiredWeightAndCapacity>,
}

pub(super) fn adjust(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let Adjust { endpoint_name, desired_weights_and_capacities } = typed(input)?;
    quotas::write(call, |transaction| {
        let mut endpoint = call.endpoint(transaction, &endpoint_name)?;
        ready_for_change(&endpoint)?;
        names(&endpoint, &desired_weights_and_capacities)?;
        for desired in &desired_weights_and_capacities {
            let serving = &mut endpoint.serving;
            let mut variants = serving.variants.iter_mut().chain(&mut serving.shadow_variants);
            if let Some(variant) =
                variants.find(|one| one.config.variant_name.eq_ignore_ascii_case(&desired.variant_name))
            {
                apply(variant, desired)?;
            }
        }
        begin(call, transaction, &mut endpoint)?;
        Ok(json!({ "EndpointArn": endpoint.identity.arn }))
    })
}

fn begin(call: &Call<'_>, transaction: &Transaction, endpoint: &mut EndpointRecord) -> Result<(), StoreError> {
    endpoint.status = EndpointStatus::Updating;
    endpoint.failure_reason = None;
    endpoint.modified_at = call.now;
    endpoint.transition = Some(Transition::Adjust { started_at: call.now });
    transaction.put(&ENDPOINTS, &endpoint.key(), endpoint)
}

/// Each variant is named once, and is there.
fn names(endpoint: &EndpointRecord, desired: &[DesiredWeightAndCapacity]) -> Result<(), ServiceError> {
    let mut seen = HashSet::new();
    if let Some(twice) = desired.iter().find(|one| !seen.insert(one.variant_name.to_ascii_lowercase())) {
        return Err(invalid(format!("The variant name \"{}\" was non-unique within the request.", twice.variant_name)));
    }
    let there =
        |name: &str| endpoint.serving.all_variants().any(|one| one.config.variant_name.eq_ignore_ascii_case(name));
    let missing: Vec<&str> = desired.iter().map(|one| one.variant_name.as_str()).filter(|name| !there(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join("\", \"");
    let config = &endpoint.serving.config_name;
    Err(invalid(format!(
        "The variant name(s) \"{names}\" is/are not present within endpoint configuration \"{config}\"."
    )))
}

fn apply(variant: &mut VariantRecord, desired: &DesiredWeightAndCapacity) -> Result<(), ServiceError> {
    let name = variant.config.variant_name.clone();
    if let Some(weight) = desired.desired_weight {
        variant.desired_weight = weight;
    }
    if let Some(count) = desired.desired_instance_count {
        allowed(variant, count)?;
        variant.desired_instance_count = count;
    }
    if let Some(update) = &desired.serverless_update_config {
        let Some(serverless) = &mut variant.desired_serverless else {
            return Err(invalid(format!(
                "ServerlessUpdateConfig is not supported for the variant \"{name}\": it runs on instances."
            )));
        };
        serverless.max_concurrency = number(update, "MaxConcurrency").unwrap_or(serverless.max_concurrency);
        serverless.provisioned_concurrency =
            number(update, "ProvisionedConcurrency").or(serverless.provisioned_concurrency);
        if serverless.provisioned_concurrency.unwrap_or(0) > serverless.max_concurrency {
            return Err(invalid("ProvisionedConcurrency must not be greater than MaxConcurrency."));
        }
    }
    Ok(())
}

fn allowed(variant: &VariantRecord, count: u32) -> Result<(), ServiceError> {
    let name = &variant.config.variant_name;
    if variant.config.serverless_config.is_some() {
        return Err(invalid(format!("DesiredInstanceCount is not supported for the serverless variant \"{name}\".")));
    }
    if count == 0 && variant.config.model_name.is_some() {
        return Err(invalid(format!(
            "DesiredInstanceCount of the variant \"{name}\" must be at least 1: only variants for inference components \
             scale in to 0."
        )));
    }
    let Some(scaling) = variant.config.managed_scaling() else { return Ok(()) };
    let (least, most) = (scaling.min_instance_count.unwrap_or(0), scaling.max_instance_count.unwrap_or(u32::MAX));
    if (least..=most).contains(&count) {
        return Ok(());
    }
    Err(invalid(format!(
        "DesiredInstanceCount of the variant \"{name}\" must be from {least} to {most}, the bounds of its \
         ManagedInstanceScaling, not {count}."
    )))
}

fn number(update: &Echoed, member: &str) -> Option<u32> {
    update.get(member)?.as_u64().and_then(|number| u32::try_from(number).ok())
}
