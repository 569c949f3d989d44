//! The operations of SageMaker's control plane, by family.

mod endpoint_configs;
mod endpoints;
mod inference_components;
mod models;
mod quotas;
mod tags;

use isotherm_config::Quotas;
use isotherm_store::{Records, Store};
use isotherm_wire::aws::Caller;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::arn::ResourceKind;
use crate::error::ServiceError;
use crate::records::{ENDPOINT_CONFIGS, ENDPOINTS, INFERENCE_COMPONENTS, MODELS, key};
use crate::records::{EndpointConfigRecord, EndpointRecord, Identity, InferenceComponentRecord, ModelRecord};
use crate::shapes::Timestamp;

/// An operation: its name, the shape of what comes, and what it does.
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) input: &'static str,
    pub(crate) effect: Effect,
    /// Takes an input that satisfies its shape; `null` is an answer without a body.
    pub(crate) run: fn(&Call<'_>, Value) -> Result<Value, ServiceError>,
}

/// Whether an operation leaves work for the deployer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Only answers, or changes what nothing runs on.
    None,
    /// Changes what should run.
    Deployment,
}

/// What an operation has at hand.
pub(crate) struct Call<'a> {
    pub(crate) store: &'a Store,
    pub(crate) caller: &'a Caller,
    pub(crate) quotas: &'a Quotas,
    pub(crate) now: Timestamp,
}

/// The operation of this name.
pub(crate) fn find(name: &str) -> Option<&'static Operation> {
    let families: [&[Operation]; 5] = [
        models::OPERATIONS,
        endpoint_configs::OPERATIONS,
        endpoints::OPERATIONS,
        inference_components::OPERATIONS,
        tags::OPERATIONS,
    ];
    families.into_iter().flatten().find(|operation| operation.name == name)
}

impl Call<'_> {
    fn identity(&self, kind: ResourceKind, name: String) -> Identity {
        Identity {
            account: self.caller.account.clone(),
            region: self.caller.region.clone(),
            arn: kind.arn(self.caller, &name),
            name,
            created_at: self.now,
        }
    }

    fn key(&self, name: &str) -> String {
        key(&self.caller.account, name)
    }

    /// What every key of the caller's begins with.
    fn account_prefix(&self) -> String {
        key(&self.caller.account, "")
    }

    fn model(&self, records: &impl Records, name: &str) -> Result<ModelRecord, ServiceError> {
        let found = records.get(&MODELS, &self.key(name))?;
        found.ok_or_else(|| ResourceKind::Model.missing(self.caller, name))
    }

    fn endpoint_config(&self, records: &impl Records, name: &str) -> Result<EndpointConfigRecord, ServiceError> {
        let found = records.get(&ENDPOINT_CONFIGS, &self.key(name))?;
        found.ok_or_else(|| ResourceKind::EndpointConfig.missing(self.caller, name))
    }

    fn endpoint(&self, records: &impl Records, name: &str) -> Result<EndpointRecord, ServiceError> {
        let found = records.get(&ENDPOINTS, &self.key(name))?;
        found.ok_or_else(|| ResourceKind::Endpoint.missing(self.caller, name))
    }

    fn inference_component(
        &self,
        records: &impl Records,
        name: &str,
    ) -> Result<InferenceComponentRecord, ServiceError> {
        let found = records.get(&INFERENCE_COMPONENTS, &self.key(name))?;
        found.ok_or_else(|| ResourceKind::InferenceComponent.missing(self.caller, name))
    }

    /// The inference components of an endpoint.
    fn components_of(
        &self,
        records: &impl Records,
        endpoint: &str,
    ) -> Result<Vec<InferenceComponentRecord>, ServiceError> {
        let all = records.scan(&INFERENCE_COMPONENTS, &self.account_prefix())?.into_iter();
        Ok(all.map(|(_, component)| component).filter(|one| one.endpoint_name.eq_ignore_ascii_case(endpoint)).collect())
    }
}

/// Types an input that satisfies its shape.
fn typed<T: DeserializeOwned>(input: Value) -> Result<T, ServiceError> {
    serde_json::from_value(input).map_err(|error| ServiceError::Serialization(error.to_string()))
}

/// A rule of the service that the request breaks.
fn invalid(message: impl Into<String>) -> ServiceError {
    ServiceError::Validation(message.into())
}
