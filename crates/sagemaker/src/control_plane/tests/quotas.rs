//! How much an account may have.

use isotherm_config::Quotas;
use serde_json::{Value, json};

use crate::control_plane::fake_deployer::Bench;
use crate::error::ServiceError;

use super::{ROLE, config, in_service, model, variant, with};

fn limited(bench: &Bench, operation: &str, input: Value) -> String {
    match bench.run(operation, input) {
        Err(error @ ServiceError::LimitExceeded(_)) if error.kind() == "ResourceLimitExceeded" => error.to_string(),
        other => panic!("{operation}: {other:?}"),
    }
}

#[test]
fn no_request_makes_the_router_start_more_than_it_may() {
    let bench = in_service();
    let many = with(variant("v"), "InitialInstanceCount", json!(499));
    bench.ok("CreateEndpointConfig", config("many", json!([many])));
    let refused = limited(&bench, "CreateEndpoint", json!({ "EndpointName": "F", "EndpointConfigName": "many" }));
    assert_eq!(
        refused,
        "The account-level service limit 'Number of instances and inference component copies across endpoints' is 500 \
         Instances, with current utilization of 2 Instances and a request delta of 499 Instances. Please raise \
         aws.quotas.instances in the router's configuration to increase this limit."
    );
    assert!(bench.run("DescribeEndpoint", json!({ "EndpointName": "F" })).is_err(), "nothing of it was kept");
    let most = i32::MAX;
    bench.ok(
        "CreateEndpointConfig",
        config(
            "more",
            json!([
                with(variant("v"), "InitialInstanceCount", json!(most)),
                with(variant("w"), "InitialInstanceCount", json!(most))
            ]),
        ),
    );
    limited(&bench, "UpdateEndpoint", json!({ "EndpointName": "E", "EndpointConfigName": "more" }));
    let desired = |count: u32| json!({ "EndpointName": "E", "DesiredWeightsAndCapacities": [{ "VariantName": "v", "DesiredInstanceCount": count }] });
    limited(&bench, "UpdateEndpointWeightsAndCapacities", desired(501));
    bench.ok("UpdateEndpointWeightsAndCapacities", desired(500));
    bench.ok("CreateModel", model("other"));
}

#[test]
fn there_are_no_more_resources_of_a_kind_than_there_may_be() {
    let quotas = Quotas { models: 2, endpoint_configs: 1, endpoints: 1, inference_components: 1, ..Quotas::default() };
    let bench = Bench::new().with_quotas(quotas);
    bench.ok("CreateModel", model("m"));
    bench.ok("CreateModel", model("n"));
    assert_eq!(
        limited(&bench, "CreateModel", model("o")),
        "The account-level service limit 'Number of models' is 2 Models, with current utilization of 2 Models and a \
         request delta of 1 Models. Please raise aws.quotas.models in the router's configuration to increase this limit."
    );
    // Another account has its own, and what goes makes room.
    let bench = bench.under_account("210987654321");
    bench.ok("CreateModel", model("o"));
    let bench = bench.under_account("123456789012");
    bench.ok("DeleteModel", json!({ "ModelName": "n" }));
    bench.ok("CreateModel", model("o"));

    let component_host = json!([{ "VariantName": "v", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1 }]);
    bench.ok("CreateEndpointConfig", with(config("c", component_host.clone()), "ExecutionRoleArn", json!(ROLE)));
    let text = limited(&bench, "CreateEndpointConfig", config("d", json!([variant("v")])));
    assert!(text.contains("'Number of endpoint configurations' is 1 Endpoint Configurations"), "{text}");
    bench.ok("CreateEndpoint", json!({ "EndpointName": "E", "EndpointConfigName": "c" }));
    bench.settle();
    let text = limited(&bench, "CreateEndpoint", json!({ "EndpointName": "F", "EndpointConfigName": "c" }));
    assert!(text.contains("'Number of endpoints' is 1 Endpoints"), "{text}");
    let component = |name: &str| {
        json!({
            "InferenceComponentName": name, "EndpointName": "E", "VariantName": "v",
            "Specification": { "ModelName": "m", "ComputeResourceRequirements": { "MinMemoryRequiredInMb": 128 } },
            "RuntimeConfig": { "CopyCount": 0 },
        })
    };
    bench.ok("CreateInferenceComponent", component("one"));
    let text = limited(&bench, "CreateInferenceComponent", component("two"));
    assert!(text.contains("'Number of inference components' is 1 Inference Components"), "{text}");
}
