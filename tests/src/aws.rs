//! SageMaker's control plane, called as its clients do.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{Answer, Client, eventually};

/// Nothing that an endpoint changes into takes longer.
const WITHIN: Duration = Duration::from_secs(60);

/// The control plane of one router.
#[derive(Debug, Clone)]
pub struct Aws {
    client: Client,
}

impl Aws {
    /// `url` is that of the data plane.
    pub fn new(url: &str) -> Aws {
        Aws { client: Client::new(url) }
    }

    /// The answer of an operation that succeeds.
    pub async fn call(&self, operation: &str, input: Value) -> Value {
        self.try_call(operation, input).await.ok().json()
    }

    /// The answer of an operation that may be refused.
    pub async fn try_call(&self, operation: &str, input: Value) -> Answer {
        let client = self.client.clone().with_header("x-amz-target", &format!("SageMaker.{operation}"));
        client.with_header("content-type", "application/x-amz-json-1.1").post("/", &input).await
    }

    /// A model of that image.
    pub async fn model(&self, name: &str, image: &str) {
        self.call("CreateModel", json!({ "ModelName": name, "PrimaryContainer": { "Image": image } })).await;
    }

    /// A configuration of one variant, `AllTraffic`; `more` are further members of the configuration.
    pub async fn configure(&self, name: &str, model: &str, instances: u64, routing: &Value, more: Value) {
        let variant = json!({ "VariantName": "AllTraffic", "ModelName": model, "InstanceType": "ml.p5.48xlarge",
                              "InitialInstanceCount": instances, "RoutingConfig": routing });
        let mut config = json!({ "EndpointConfigName": name, "ProductionVariants": [variant] });
        if let (Some(config), Some(more)) = (config.as_object_mut(), more.as_object()) {
            config.extend(more.clone());
        }
        self.call("CreateEndpointConfig", config).await;
    }

    /// An endpoint of a configuration with so many instances, in service.
    pub async fn create(&self, endpoint: &str, config: &str, instances: u64) {
        self.call("CreateEndpoint", json!({ "EndpointName": endpoint, "EndpointConfigName": config })).await;
        self.in_service(endpoint, instances).await;
    }

    /// Begins to bring another configuration onto an endpoint.
    pub async fn begin_update(&self, endpoint: &str, config: &str, deployment: Value) {
        let mut update = json!({ "EndpointName": endpoint, "EndpointConfigName": config });
        if !deployment.is_null() {
            update["DeploymentConfig"] = deployment;
        }
        self.call("UpdateEndpoint", update).await;
    }

    /// Begins to change the number of an endpoint's instances.
    pub async fn begin_scaling(&self, endpoint: &str, instances: u64) {
        let desired = json!([{ "VariantName": "AllTraffic", "DesiredInstanceCount": instances }]);
        let update = json!({ "EndpointName": endpoint, "DesiredWeightsAndCapacities": desired });
        self.call("UpdateEndpointWeightsAndCapacities", update).await;
    }

    pub async fn describe(&self, endpoint: &str) -> Value {
        self.call("DescribeEndpoint", json!({ "EndpointName": endpoint })).await
    }

    pub async fn describe_component(&self, component: &str) -> Value {
        self.call("DescribeInferenceComponent", json!({ "InferenceComponentName": component })).await
    }

    /// Waits until an endpoint is in service with that many instances.
    pub async fn in_service(&self, endpoint: &str, instances: u64) -> Value {
        eventually("the endpoint is in service", WITHIN, async || {
            let described = self.describe(endpoint).await;
            let there = described["ProductionVariants"][0]["CurrentInstanceCount"] == instances;
            (there && described["EndpointStatus"] == "InService").then_some(described)
        })
        .await
    }

    /// Waits until a component is in service with that many copies.
    pub async fn component_in_service(&self, component: &str, copies: u64) -> Value {
        eventually("the component is in service", WITHIN, async || {
            let described = self.describe_component(component).await;
            let there = described["RuntimeConfig"]["CurrentCopyCount"] == copies;
            (there && described["InferenceComponentStatus"] == "InService").then_some(described)
        })
        .await
    }
}
