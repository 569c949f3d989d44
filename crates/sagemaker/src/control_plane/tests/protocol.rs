//! What goes over the wire: targets, statuses, headers, bodies.

use bytes::Bytes;
use http::{Request, Response};
use isotherm_wire::aws::{AwsRequest, AwsService};
use serde_json::{Value, json};

use super::super::fake_deployer::Bench;
use super::model;

async fn call(bench: &Bench, target: &str, body: &str) -> Response<Bytes> {
    let (head, ()) = Request::post("/").header("x-amz-target", target).body(()).unwrap().into_parts();
    let body = Bytes::copy_from_slice(body.as_bytes());
    bench.plane.call(AwsRequest { head, body, caller: bench.caller.clone() }).await
}

fn json_of(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap()
}

#[tokio::test]
async fn an_answer_has_the_protocols_type() {
    let bench = Bench::new();
    let created = call(&bench, "SageMaker.CreateModel", &model("m").to_string()).await;
    assert_eq!(created.status(), 200);
    assert_eq!(created.headers()["content-type"], "application/x-amz-json-1.1");
    assert!(json_of(&created)["ModelArn"].is_string());
    let deleted = call(&bench, "SageMaker.DeleteModel", r#"{"ModelName":"m"}"#).await;
    assert_eq!((deleted.status().as_u16(), deleted.body().len()), (200, 0), "a deletion answers without a body");
}

#[tokio::test]
async fn errors_are_400_with_a_type_and_a_message() {
    let bench = Bench::new();
    for (target, body, kind, message) in [
        (
            "SageMaker.DescribeEndpoint",
            r#"{"EndpointName":"x"}"#,
            "ValidationException",
            "Could not find endpoint \"arn:aws:sagemaker:eu-west-1:123456789012:endpoint/x\".",
        ),
        (
            "SageMaker.DescribeEndpoint",
            "",
            "ValidationException",
            "1 validation error detected: Value null at 'endpointName' failed to satisfy constraint: Member must not be null",
        ),
        ("SageMaker.DescribeEndpoint", "{", "SerializationException", "The body is not JSON: "),
        (
            "SageMaker.DescribeEndpoint",
            "[]",
            "SerializationException",
            "START_ARRAY can not be converted to a structure",
        ),
        (
            "SageMaker.CreateTrainingJob",
            "{}",
            "UnknownOperationException",
            "CreateTrainingJob is not an operation of SageMaker that is served here.",
        ),
    ] {
        let response = call(&bench, target, body).await;
        assert_eq!(response.status(), 400, "{target}");
        let error = json_of(&response);
        assert_eq!(error["__type"], json!(kind));
        assert!(error["message"].as_str().unwrap().starts_with(message), "{error}");
    }
}
