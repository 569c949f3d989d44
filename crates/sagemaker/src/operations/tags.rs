//! Add, list and delete the tags of a resource.

use isotherm_store::{Records, StoreError, Transaction};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Effect, Operation, invalid, typed};
use crate::arn::{Arn, ResourceKind};
use crate::error::ServiceError;
use crate::listing::bad_token;
use crate::records::{ENDPOINT_CONFIGS, ENDPOINTS, INFERENCE_COMPONENTS, Identity, MODELS, TAGS, key, tags_key};
use crate::rules;
use crate::shapes::Tag;

pub(super) const OPERATIONS: &[Operation] = &[
    Operation { name: "AddTags", input: "AddTagsInput", effect: Effect::None, run: add },
    Operation { name: "ListTags", input: "ListTagsInput", effect: Effect::None, run: list },
    Operation { name: "DeleteTags", input: "DeleteTagsInput", effect: Effect::None, run: delete },
];

/// How many tags a resource may have.
const MOST: usize = 50;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AddTags {
    resource_arn: String,
    tags: Vec<Tag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListTags {
    resource_arn: String,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DeleteTags {
    resource_arn: String,
    tag_keys: Vec<String>,
}

/// Gives a resource these tags in place of those that it has.
pub(super) fn attach(
    transaction: &Transaction,
    kind: ResourceKind,
    identity: &Identity,
    tags: &[Tag],
) -> Result<(), StoreError> {
    let key = tags_key(&identity.account, kind.in_arn(), &identity.name);
    if tags.is_empty() {
        transaction.remove(&TAGS, &key)?;
        return Ok(());
    }
    transaction.put(&TAGS, &key, &tags.to_vec())
}

fn add(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let AddTags { resource_arn, tags } = typed(input)?;
    rules::tags::check(&tags)?;
    call.store.write(|transaction| {
        let key = tagged(call, transaction, &resource_arn)?;
        let mut all = transaction.get(&TAGS, &key)?.unwrap_or_default();
        for tag in tags {
            match all.iter_mut().find(|one| one.key == tag.key) {
                Some(one) => *one = tag,
                None => all.push(tag),
            }
        }
        if all.len() > MOST {
            let count = all.len();
            return Err(invalid(format!("A resource can have {MOST} tags; \"{resource_arn}\" would have {count}.")));
        }
        transaction.put(&TAGS, &key, &all)?;
        Ok(json!({ "Tags": all }))
    })
}

/// All tags of a resource fit on one page, so no token is ever given out.
fn list(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let ListTags { resource_arn, next_token } = typed(input)?;
    if next_token.is_some() {
        return Err(bad_token("it is not one that a list gave"));
    }
    call.store.read(|records| {
        let key = tagged(call, records, &resource_arn)?;
        Ok(json!({ "Tags": records.get(&TAGS, &key)?.unwrap_or_default() }))
    })
}

fn delete(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let DeleteTags { resource_arn, tag_keys } = typed(input)?;
    call.store.write(|transaction| {
        let key = tagged(call, transaction, &resource_arn)?;
        let mut all = transaction.get(&TAGS, &key)?.unwrap_or_default();
        all.retain(|tag| !tag_keys.contains(&tag.key));
        transaction.put(&TAGS, &key, &all)?;
        Ok(json!({}))
    })
}

/// The key of the tags of a resource of the caller's that is there.
fn tagged(call: &Call<'_>, records: &impl Records, arn: &str) -> Result<String, ServiceError> {
    let unknown = || invalid(format!("Could not find resource \"{arn}\"."));
    let Arn { account, kind, name } = Arn::parse(arn).ok_or_else(unknown)?;
    if account != call.caller.account {
        return Err(kind.missing_arn(arn));
    }
    let resource = key(account, name);
    let there = match kind {
        ResourceKind::Model => records.get(&MODELS, &resource)?.is_some(),
        ResourceKind::EndpointConfig => records.get(&ENDPOINT_CONFIGS, &resource)?.is_some(),
        ResourceKind::Endpoint => records.get(&ENDPOINTS, &resource)?.is_some(),
        ResourceKind::InferenceComponent => records.get(&INFERENCE_COMPONENTS, &resource)?.is_some(),
    };
    if there { Ok(tags_key(account, kind.in_arn(), name)) } else { Err(kind.missing_arn(arn)) }
}
