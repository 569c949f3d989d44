//! Create, describe, list and delete endpoint configurations.

use isotherm_store::Records;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Effect, Operation, quotas, tags, typed};
use crate::arn::ResourceKind;
use crate::error::ServiceError;
use crate::listing::{Listed, page};
use crate::records::{ENDPOINT_CONFIGS, EndpointConfigRecord, Identity};
use crate::rules;
use crate::shapes::{EndpointConfigSettings, ProductionVariant, Tag};

pub(super) const OPERATIONS: &[Operation] = &[
    Operation { name: "CreateEndpointConfig", input: "CreateEndpointConfigInput", effect: Effect::None, run: create },
    Operation {
        name: "DescribeEndpointConfig",
        input: "DescribeEndpointConfigInput",
        effect: Effect::None,
        run: describe,
    },
    Operation { name: "ListEndpointConfigs", input: "ListEndpointConfigsInput", effect: Effect::None, run: list },
    Operation { name: "DeleteEndpointConfig", input: "DeleteEndpointConfigInput", effect: Effect::None, run: delete },
];

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CreateEndpointConfig {
    endpoint_config_name: String,
    #[serde(flatten)]
    settings: EndpointConfigSettings,
    production_variants: Vec<ProductionVariant>,
    #[serde(default)]
    shadow_production_variants: Vec<ProductionVariant>,
    #[serde(default)]
    tags: Vec<Tag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NamedEndpointConfig {
    endpoint_config_name: String,
}

fn create(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let input: CreateEndpointConfig = typed(input)?;
    let mut record = EndpointConfigRecord {
        identity: call.identity(ResourceKind::EndpointConfig, input.endpoint_config_name),
        settings: input.settings,
        variants: input.production_variants,
        shadow_variants: input.shadow_production_variants,
    };
    rules::tags::check(&input.tags)?;
    rules::variants::check(&record)?;
    for variant in record.variants.iter_mut().chain(&mut record.shadow_variants) {
        variant.initial_variant_weight.get_or_insert(1.0);
    }
    call.store.write(|transaction| {
        let key = record.identity.key();
        if transaction.get(&ENDPOINT_CONFIGS, &key)?.is_some() {
            return Err(ResourceKind::EndpointConfig.existing(call.caller, &record.identity.name));
        }
        quotas::one_more(call, transaction, &quotas::ENDPOINT_CONFIG)?;
        for model in record.variants.iter().chain(&record.shadow_variants).flat_map(ProductionVariant::models) {
            call.model(transaction, model)?;
        }
        tags::attach(transaction, ResourceKind::EndpointConfig, &record.identity, &input.tags)?;
        Ok(transaction.put(&ENDPOINT_CONFIGS, &key, &record)?)
    })?;
    Ok(json!({ "EndpointConfigArn": record.identity.arn }))
}

fn describe(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let NamedEndpointConfig { endpoint_config_name } = typed(input)?;
    let mut record = call.store.read(|records| call.endpoint_config(records, &endpoint_config_name))?;
    record.settings.enable_network_isolation.get_or_insert(false);
    let mut answer = serde_json::to_value(&record.settings)?;
    answer["EndpointConfigName"] = json!(record.identity.name);
    answer["EndpointConfigArn"] = json!(record.identity.arn);
    answer["CreationTime"] = json!(record.identity.created_at);
    answer["ProductionVariants"] = json!(record.variants);
    if !record.shadow_variants.is_empty() {
        answer["ShadowProductionVariants"] = json!(record.shadow_variants);
    }
    Ok(answer)
}

fn list(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let configs = call.store.read(|records| records.scan(&ENDPOINT_CONFIGS, &call.account_prefix()))?;
    page(typed(input)?, "EndpointConfigs", configs.into_iter().map(|(_, config)| config).collect())
}

/// Endpoints keep what they were made from, so that a configuration in use may go.
fn delete(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let NamedEndpointConfig { endpoint_config_name } = typed(input)?;
    call.store.write(|transaction| {
        let config = call.endpoint_config(transaction, &endpoint_config_name)?;
        tags::attach(transaction, ResourceKind::EndpointConfig, &config.identity, &[])?;
        transaction.remove(&ENDPOINT_CONFIGS, &config.identity.key())?;
        Ok(Value::Null)
    })
}

impl Listed for EndpointConfigRecord {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn summary(&self) -> Value {
        let Identity { name, arn, created_at, .. } = &self.identity;
        json!({ "EndpointConfigName": name, "EndpointConfigArn": arn, "CreationTime": created_at })
    }
}
