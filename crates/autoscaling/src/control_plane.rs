//! SageMaker's control plane as what scaling works on: asked and told by the operations that it answers everybody by.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use isotherm_wire::aws::{AwsRequest, AwsService, Caller};
use serde_json::{Value, json};

use crate::resource::{Capacity, Owner, Resource, ScalableResources, Working};

/// A control plane.
pub struct OverControlPlane {
    sagemaker: Arc<dyn AwsService>,
}

impl OverControlPlane {
    /// Over the service that answers `SageMaker.…`.
    pub fn new(sagemaker: Arc<dyn AwsService>) -> OverControlPlane {
        OverControlPlane { sagemaker }
    }

    /// The answer to an operation; `None` where what it names is not there.
    async fn ask(&self, owner: &Owner, operation: &str, input: Value) -> Result<Option<Value>, String> {
        let request = Request::post("/").header("x-amz-target", format!("SageMaker.{operation}"));
        let request = request.header("content-type", "application/x-amz-json-1.1").body(());
        let (head, ()) = request.map_err(|error| error.to_string())?.into_parts();
        let caller = Caller {
            account: owner.account.clone(),
            region: owner.region.clone(),
            access_key: None,
            name: Some("application-autoscaling".to_owned()),
        };
        let body = Bytes::from(input.to_string());
        let response = self.sagemaker.call(AwsRequest { head, body, caller }).await;
        let answer: Value = serde_json::from_slice(response.body()).unwrap_or_default();
        if response.status().is_success() {
            return Ok(Some(answer));
        }
        let message = answer["message"].as_str().or(answer["Message"].as_str()).unwrap_or("no message");
        if message.starts_with("Could not find") { Ok(None) } else { Err(format!("{operation}: {message}")) }
    }
}

impl ScalableResources for OverControlPlane {
    fn capacity<'a>(&'a self, owner: &'a Owner, resource: &'a Resource) -> Working<'a, Option<Capacity>> {
        Box::pin(async move {
            match resource {
                Resource::Variant { endpoint, variant } => {
                    let input = json!({ "EndpointName": endpoint });
                    let described = self.ask(owner, "DescribeEndpoint", input).await?;
                    Ok(described.and_then(|described| of_variant(&described, variant)))
                }
                Resource::Component { name } => {
                    let input = json!({ "InferenceComponentName": name });
                    let described = self.ask(owner, "DescribeInferenceComponent", input).await?;
                    Ok(described.map(|described| of_component(&described)))
                }
            }
        })
    }

    fn set_capacity<'a>(&'a self, owner: &'a Owner, resource: &'a Resource, desired: u32) -> Working<'a, ()> {
        Box::pin(async move {
            let (operation, input) = match resource {
                Resource::Variant { endpoint, variant } => (
                    "UpdateEndpointWeightsAndCapacities",
                    json!({
                        "EndpointName": endpoint,
                        "DesiredWeightsAndCapacities": [{ "VariantName": variant, "DesiredInstanceCount": desired }],
                    }),
                ),
                Resource::Component { name } => (
                    "UpdateInferenceComponentRuntimeConfig",
                    json!({ "InferenceComponentName": name, "DesiredRuntimeConfig": { "CopyCount": desired } }),
                ),
            };
            match self.ask(owner, operation, input).await? {
                Some(_) => Ok(()),
                None => Err(format!("{resource} is gone")),
            }
        })
    }
}

impl std::fmt::Debug for OverControlPlane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OverControlPlane").finish_non_exhaustive()
    }
}

fn of_variant(endpoint: &Value, variant: &str) -> Option<Capacity> {
    let settled = endpoint["EndpointStatus"] == "InService";
    // An endpoint that is being made or has failed lists no variants; then nothing is certain.
    let Some(variants) = endpoint["ProductionVariants"].as_array() else {
        return Some(Capacity { desired: 0, running: 0, settled: false });
    };
    let found = variants.iter().find(|of| of["VariantName"] == variant)?;
    Some(Capacity {
        desired: count(&found["DesiredInstanceCount"]),
        running: count(&found["CurrentInstanceCount"]),
        settled,
    })
}

fn of_component(component: &Value) -> Capacity {
    let runtime = &component["RuntimeConfig"];
    Capacity {
        desired: count(&runtime["DesiredCopyCount"]),
        running: count(&runtime["CurrentCopyCount"]),
        settled: component["InferenceComponentStatus"] == "InService",
    }
}

fn count(value: &Value) -> u32 {
    value.as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use http::Response;
    use isotherm_wire::aws::Answering;
    use parking_lot::Mutex;

    use super::*;

    /// Notes what it is asked, and gives the answers in order.
    struct Scripted {
        asked: Mutex<Vec<(String, Value)>>,
        answers: Mutex<Vec<(u16, Value)>>,
    }

    impl AwsService for Scripted {
        fn call(&self, request: AwsRequest) -> Answering {
            let target = request.head.headers["x-amz-target"].to_str().unwrap_or_default().to_owned();
            self.asked.lock().push((target, serde_json::from_slice(&request.body).unwrap_or_default()));
            let (status, answer) = self.answers.lock().remove(0);
            let mut response = Response::new(Bytes::from(answer.to_string()));
            *response.status_mut() = http::StatusCode::from_u16(status).expect("a status");
            Box::pin(ready(response))
        }
    }

    fn owner() -> Owner {
        Owner { account: "123456789012".to_owned(), region: "eu-west-1".to_owned() }
    }

    fn variant() -> Resource {
        Resource::Variant { endpoint: "chat".to_owned(), variant: "blue".to_owned() }
    }

    fn scripted(answers: Vec<(u16, Value)>) -> (Arc<Scripted>, OverControlPlane) {
        let scripted = Arc::new(Scripted { asked: Mutex::default(), answers: Mutex::new(answers) });
        (Arc::clone(&scripted), OverControlPlane::new(scripted))
    }

    #[tokio::test]
    async fn capacities_are_what_the_control_plane_describes() {
        let variants = json!([{"VariantName": "blue", "CurrentInstanceCount": 2, "DesiredInstanceCount": 3}]);
        let (_, plane) = scripted(vec![
            (200, json!({"EndpointStatus": "InService", "ProductionVariants": variants})),
            (200, json!({"EndpointStatus": "InService", "ProductionVariants": []})),
            (200, json!({"EndpointStatus": "Creating"})),
            (400, json!({"__type": "ValidationException", "message": "Could not find endpoint \"arn\"."})),
            (500, json!({"__type": "InternalFailure", "message": "disk full"})),
            (
                200,
                json!({"InferenceComponentStatus": "Updating",
                "RuntimeConfig": {"DesiredCopyCount": 1, "CurrentCopyCount": 0}}),
            ),
        ]);
        let (owner, variant) = (owner(), variant());
        let capacity = |desired, running, settled| Ok(Some(Capacity { desired, running, settled }));
        assert_eq!(plane.capacity(&owner, &variant).await, capacity(3, 2, true));
        assert_eq!(plane.capacity(&owner, &variant).await, Ok(None), "the variant is gone");
        assert_eq!(plane.capacity(&owner, &variant).await, capacity(0, 0, false));
        assert_eq!(plane.capacity(&owner, &variant).await, Ok(None), "the endpoint is gone");
        assert_eq!(plane.capacity(&owner, &variant).await, Err("DescribeEndpoint: disk full".to_owned()));
        let component = Resource::Component { name: "llama".to_owned() };
        assert_eq!(plane.capacity(&owner, &component).await, capacity(1, 0, false));
    }

    #[tokio::test]
    async fn capacities_are_set_by_the_operations_of_the_api() {
        let (asked, plane) = scripted(vec![(200, json!({})), (200, json!({}))]);
        let component = Resource::Component { name: "llama".to_owned() };
        assert_eq!(plane.set_capacity(&owner(), &variant(), 4).await, Ok(()));
        assert_eq!(plane.set_capacity(&owner(), &component, 0).await, Ok(()));
        assert_eq!(
            *asked.asked.lock(),
            [
                (
                    "SageMaker.UpdateEndpointWeightsAndCapacities".to_owned(),
                    json!({"EndpointName": "chat",
                    "DesiredWeightsAndCapacities": [{"VariantName": "blue", "DesiredInstanceCount": 4}]})
                ),
                (
                    "SageMaker.UpdateInferenceComponentRuntimeConfig".to_owned(),
                    json!({"InferenceComponentName": "llama", "DesiredRuntimeConfig": {"CopyCount": 0}})
                ),
            ]
        );
    }
}
