//! Whole stories over the control plane, with a deployer that does everything at once.

mod components;
mod endpoints;
mod protocol;
mod quotas;
mod resources;

use serde_json::{Value, json};

use super::fake_deployer::Bench;

const ARN: &str = "arn:aws:sagemaker:eu-west-1:123456789012";
const ROLE: &str = "arn:aws:iam::123456789012:role/r";

fn model(name: &str) -> Value {
    json!({ "ModelName": name, "PrimaryContainer": { "Image": "vllm:1", "Environment": { "A": "b" } } })
}

/// A variant of two instances that runs the model `m`.
fn variant(name: &str) -> Value {
    json!({ "VariantName": name, "ModelName": "m", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 2 })
}

fn config(name: &str, variants: Value) -> Value {
    json!({ "EndpointConfigName": name, "ProductionVariants": variants })
}

/// The same value with this member.
fn with(mut value: Value, member: &str, given: Value) -> Value {
    value[member] = given;
    value
}

/// An endpoint `E` of configuration `c` with one variant `v` of two instances, in service.
fn in_service() -> Bench {
    let bench = Bench::new();
    bench.ok("CreateModel", model("m"));
    bench.ok("CreateEndpointConfig", config("c", json!([variant("v")])));
    bench.ok("CreateEndpoint", json!({ "EndpointName": "E", "EndpointConfigName": "c" }));
    bench.settle();
    bench
}

fn describe(bench: &Bench) -> Value {
    bench.ok("DescribeEndpoint", json!({ "EndpointName": "e" }))
}
