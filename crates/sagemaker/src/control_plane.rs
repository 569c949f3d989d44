//! The service itself: reads a request's operation and input, runs it, and answers in SageMaker's protocol.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use isotherm_config::Quotas;
use isotherm_store::{Records, Store, StoreError};
use isotherm_wire::aws::{Answering, Asked, AwsRequest, AwsService, Caller, Protocol};
use serde_json::{Value, json};

use crate::Deployer;
use crate::constraints::check;
use crate::error::ServiceError;
use crate::operations::{Call, Effect, find};
use crate::records::{ENDPOINTS, EndpointRecord, INFERENCE_COMPONENTS, InferenceComponentRecord, key};
use crate::shapes::Timestamp;

const CONTENT_TYPE: &str = "application/x-amz-json-1.1";

/// SageMaker's control plane over a store. Cheap to clone.
#[derive(Clone)]
pub struct ControlPlane {
    store: Arc<Store>,
    deployer: Arc<dyn Deployer>,
    quotas: Quotas,
}

impl ControlPlane {
    /// The control plane of the resources in this store; the deployer is woken when what should run changes.
    pub fn new(store: Arc<Store>, deployer: Arc<dyn Deployer>) -> ControlPlane {
        ControlPlane { store, deployer, quotas: Quotas::default() }
    }

    /// The same with these quotas for each account.
    #[must_use]
    pub fn with_quotas(self, quotas: Quotas) -> ControlPlane {
        ControlPlane { quotas, ..self }
    }

    /// Runs an operation by its name, as a client with this input would.
    ///
    /// # Errors
    ///
    /// What the client would be told.
    pub fn run(&self, caller: &Caller, operation: &str, input: &Value) -> Result<Value, ServiceError> {
        let Some(operation) = find(operation) else {
            return Err(ServiceError::UnknownOperation(format!(
                "{operation} is not an operation of SageMaker that is served here."
            )));
        };
        let known = check(operation.input, input)?;
        let call = Call { store: &self.store, caller, quotas: &self.quotas, now: Timestamp::now() };
        let answer = (operation.run)(&call, known)?;
        if operation.effect == Effect::Deployment {
            self.deployer.wake();
        }
        Ok(answer)
    }

    /// Changes how many instances a variant should have.
    ///
    /// # Errors
    ///
    /// Those of UpdateEndpointWeightsAndCapacities.
    pub fn set_instance_count(
        &self,
        caller: &Caller,
        endpoint: &str,
        variant: &str,
        count: u32,
    ) -> Result<(), ServiceError> {
        let desired = json!([{ "VariantName": variant, "DesiredInstanceCount": count }]);
        let input = json!({ "EndpointName": endpoint, "DesiredWeightsAndCapacities": desired });
        self.run(caller, "UpdateEndpointWeightsAndCapacities", &input).map(|_| ())
    }

    /// Changes how many copies an inference component should have.
    ///
    /// # Errors
    ///
    /// Those of UpdateInferenceComponentRuntimeConfig.
    pub fn set_copy_count(&self, caller: &Caller, component: &str, count: u32) -> Result<(), ServiceError> {
        let desired = json!({ "CopyCount": count });
        let input = json!({ "InferenceComponentName": component, "DesiredRuntimeConfig": desired });
        self.run(caller, "UpdateInferenceComponentRuntimeConfig", &input).map(|_| ())
    }

    /// The account's endpoint of this name.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub fn endpoint(&self, account: &str, name: &str) -> Result<Option<EndpointRecord>, StoreError> {
        self.store.read(|records| records.get(&ENDPOINTS, &key(account, name)))
    }

    /// The endpoints of all accounts.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub fn endpoints(&self) -> Result<Vec<EndpointRecord>, StoreError> {
        self.store.read(|records| Ok(records.scan(&ENDPOINTS, "")?.into_iter().map(|(_, record)| record).collect()))
    }

    /// The account's inference component of this name.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub fn inference_component(
        &self,
        account: &str,
        name: &str,
    ) -> Result<Option<InferenceComponentRecord>, StoreError> {
        self.store.read(|records| records.get(&INFERENCE_COMPONENTS, &key(account, name)))
    }

    fn answer(&self, request: &AwsRequest) -> Response<Bytes> {
        let Asked { operation, .. } = Asked::of(&request.head, &request.body);
        match input(&request.body).and_then(|input| self.run(&request.caller, &operation, &input)) {
            Ok(Value::Null) => response(Bytes::new()),
            Ok(answer) => response(Bytes::from(answer.to_string())),
            Err(error) => {
                if let ServiceError::Store(_) | ServiceError::Answer(_) = &error {
                    let source = std::error::Error::source(&error);
                    tracing::error!(operation, error = source, "the control plane failed");
                }
                refusal(&error)
            }
        }
    }
}

impl AwsService for ControlPlane {
    /// Operations wait for the disk, so they run where blocking is allowed.
    fn call(&self, request: AwsRequest) -> Answering {
        let plane = self.clone();
        Box::pin(async move {
            let answered = tokio::task::spawn_blocking(move || plane.answer(&request)).await;
            answered.unwrap_or_else(|_| refusal(&ServiceError::Interrupted))
        })
    }
}

impl std::fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlPlane").field("store", &self.store).finish_non_exhaustive()
    }
}

/// No body at all is an empty input.
fn input(body: &[u8]) -> Result<Value, ServiceError> {
    if body.is_empty() {
        return Ok(json!({}));
    }
    serde_json::from_slice(body).map_err(|error| ServiceError::Serialization(format!("The body is not JSON: {error}.")))
}

fn response(body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    response
}

/// The front door gives every answer its id.
fn refusal(error: &ServiceError) -> Response<Bytes> {
    error.told().response(Protocol::Json11, "")
}

#[cfg(test)]
mod fake_deployer;
#[cfg(test)]
mod tests;
