//! The service itself: reads a request's operation and input, runs it, and answers in SageMaker's protocol.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use isotherm_store::{Records, Store, StoreError};
use isotherm_wire::aws::{Answering, AwsRequest, AwsService, Caller};
use serde_json::{Value, json};

use crate::Deployer;
use crate::constraints::check;
use crate::error::ServiceError;
use crate::operations::{Call, Effect, find};
use crate::records::{ENDPOINTS, EndpointRecord, INFERENCE_COMPONENTS, InferenceComponentRecord, key};
use crate::shapes::Timestamp;

/// What `X-Amz-Target` begins with.
pub const TARGET_PREFIX: &str = "SageMaker.";

const TARGET: &str = "x-amz-target";
const REQUEST_ID: &str = "x-amzn-requestid";
const CONTENT_TYPE: &str = "application/x-amz-json-1.1";

/// SageMaker's control plane over a store. Cheap to clone.
#[derive(Clone)]
pub struct ControlPlane {
    store: Arc<Store>,
    deployer: Arc<dyn Deployer>,
}

impl ControlPlane {
    /// The control plane of the resources in this store; the deployer is woken when what should run changes.
    pub fn new(store: Arc<Store>, deployer: Arc<dyn Deployer>) -> ControlPlane {
        ControlPlane { store, deployer }
    }

    /// Runs an operation by its name, as a client with this input would.
    ///
    /// # Errors
    ///
    /// What the client would be told.
    pub fn run(&self, caller: &Caller, operation: &str, input: &Value) -> Result<Value, ServiceError> {
        let Some(operation) = find(operation) else {
            return Err(ServiceError::UnknownOperation(format!(
                "{TARGET_PREFIX}{operation} is not an operation of this service."
            )));
        };
        let known = check(operation.input, input)?;
        let answer = (operation.run)(&Call { store: &self.store, caller, now: Timestamp::now() }, known)?;
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
        let target = request.head.headers.get(TARGET).and_then(|target| target.to_str().ok()).unwrap_or_default();
        let operation = target.strip_prefix(TARGET_PREFIX).unwrap_or(target);
        match input(&request.body).and_then(|input| self.run(&request.caller, operation, &input)) {
            Ok(Value::Null) => response(StatusCode::OK, Bytes::new()),
            Ok(answer) => response(StatusCode::OK, Bytes::from(answer.to_string())),
            Err(error) => {
                if error.status().is_server_error() {
                    tracing::error!(operation, error = &error as &dyn std::error::Error, "the control plane failed");
                }
                response(error.status(), error.body())
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
            answered.unwrap_or_else(|_| {
                let body = json!({ "__type": "InternalFailure", "message": "The operation was interrupted." });
                response(StatusCode::INTERNAL_SERVER_ERROR, Bytes::from(body.to_string()))
            })
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

fn response(status: StatusCode, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    if let Some(id) = request_id() {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// A fresh id in the form that AWS's have: a random UUID.
fn request_id() -> Option<HeaderValue> {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).ok()?;
    let bits = (u128::from_be_bytes(random) & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    let (one, two, three, four, five) = (&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
    HeaderValue::from_str(&format!("{one}-{two}-{three}-{four}-{five}")).ok()
}

#[cfg(test)]
mod fake_deployer;
#[cfg(test)]
mod tests;
