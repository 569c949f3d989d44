//! Create, describe, list and delete models.

use isotherm_store::Records;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Effect, Operation, quotas, tags, typed};
use crate::arn::ResourceKind;
use crate::error::ServiceError;
use crate::listing::{Listed, page};
use crate::records::{Identity, MODELS, ModelRecord};
use crate::rules;
use crate::shapes::{ModelSettings, Tag};

pub(super) const OPERATIONS: &[Operation] = &[
    Operation { name: "CreateModel", input: "CreateModelInput", effect: Effect::None, run: create },
    Operation { name: "DescribeModel", input: "DescribeModelInput", effect: Effect::None, run: describe },
    Operation { name: "ListModels", input: "ListModelsInput", effect: Effect::None, run: list },
    Operation { name: "DeleteModel", input: "DeleteModelInput", effect: Effect::None, run: delete },
];

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CreateModel {
    model_name: String,
    #[serde(flatten)]
    settings: ModelSettings,
    #[serde(default)]
    tags: Vec<Tag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NamedModel {
    model_name: String,
}

fn create(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let CreateModel { model_name, settings, tags } = typed(input)?;
    rules::model::check(&settings)?;
    rules::tags::check(&tags)?;
    let record = ModelRecord { identity: call.identity(ResourceKind::Model, model_name), settings };
    call.store.write(|transaction| {
        let key = record.identity.key();
        if transaction.get(&MODELS, &key)?.is_some() {
            return Err(ResourceKind::Model.existing(call.caller, &record.identity.name));
        }
        quotas::one_more(call, transaction, &quotas::MODEL)?;
        tags::attach(transaction, ResourceKind::Model, &record.identity, &tags)?;
        Ok(transaction.put(&MODELS, &key, &record)?)
    })?;
    Ok(json!({ "ModelArn": record.identity.arn }))
}

fn describe(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let NamedModel { model_name } = typed(input)?;
    let ModelRecord { identity, mut settings } = call.store.read(|records| call.model(records, &model_name))?;
    settings.enable_network_isolation.get_or_insert(false);
    let mut answer = serde_json::to_value(settings)?;
    answer["ModelName"] = json!(identity.name);
    answer["ModelArn"] = json!(identity.arn);
    answer["CreationTime"] = json!(identity.created_at);
    Ok(answer)
}

fn list(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let models = call.store.read(|records| records.scan(&MODELS, &call.account_prefix()))?;
    page(typed(input)?, "Models", models.into_iter().map(|(_, model)| model).collect())
}

fn delete(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let NamedModel { model_name } = typed(input)?;
    call.store.write(|transaction| {
        let model = call.model(transaction, &model_name)?;
        tags::attach(transaction, ResourceKind::Model, &model.identity, &[])?;
        transaction.remove(&MODELS, &model.identity.key())?;
        Ok(Value::Null)
    })
}

impl Listed for ModelRecord {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn summary(&self) -> Value {
        let Identity { name, arn, created_at, .. } = &self.identity;
        json!({ "ModelName": name, "ModelArn": arn, "CreationTime": created_at })
    }
}
