//! How much an account may have running.

use serde_json::{Value, json};

use crate::control_plane::fake_deployer::Bench;
use crate::error::ServiceError;

use super::{config, in_service, model, variant, with};

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
        "The account-level service limit 'Instances and inference component copies across endpoints' is 500, with \
         current utilization of 2 and a request delta of 499."
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
