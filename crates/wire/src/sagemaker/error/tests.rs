//! Errors against the bodies that AWS has been seen to send.

use super::*;

fn model(container: &str, fault: Fault) -> RuntimeError {
    let scene = Scene { endpoint: "my-ep".into(), account: "123456789012".into(), region: "us-west-2".into() };
    RuntimeError::Model(Box::new(ModelError { scene, container: container.into(), fault }))
}

fn parsed(error: &RuntimeError, dialect: Dialect) -> Value {
    serde_json::from_slice(&error.to_json(dialect)).unwrap()
}

const SEE: &str = "See https://us-west-2.console.aws.amazon.com/cloudwatch/home?region=us-west-2#logEventViewer:\
                   group=/aws/sagemaker/Endpoints/my-ep in account 123456789012 for more information.";

#[test]
fn what_is_not_there_is_a_validation_error() {
    let error = RuntimeError::endpoint_not_found("my-ep", "123456789012");
    let message = "Endpoint my-ep of account 123456789012 not found.";
    assert_eq!(parsed(&error, Dialect::SageMaker), json!({ "Message": message }));
    assert_eq!((error.status(Dialect::SageMaker), error.name()), (400, Some("ValidationError")));
    let openai = json!({"error": {"message": message, "type": "invalid_request_error", "code": "validation_error"}});
    assert_eq!(parsed(&error, Dialect::SageMakerOpenAi), openai);
    assert_eq!(error.status(Dialect::SageMakerOpenAi), 400);
}

#[test]
fn a_missing_components_name_has_its_code() {
    let expected = json!({
        "ErrorCode": "INFERENCE_COMPONENT_NAME_MISSING",
        "Message": "Inference Component Name header is required for endpoints to which you plan to deploy inference \
                    components. Please include Inference Component Name header or consider using SageMaker models.",
    });
    assert_eq!(parsed(&RuntimeError::component_name_missing(), Dialect::SageMaker), expected);
}

#[test]
fn a_component_without_copies_says_how_to_get_some() {
    let expected = json!({
        "Message": "Inference Component has no capacity to process this request. ApplicationAutoScaling may be \
                    in-progress (if configured) or try to increase the capacity by invoking \
                    UpdateInferenceComponentRuntimeConfig API.",
    });
    assert_eq!(parsed(&RuntimeError::no_capacity(), Dialect::SageMaker), expected);
}

#[test]
fn a_body_over_the_limit_has_no_name() {
    let error = RuntimeError::TooLarge(6_291_456);
    assert_eq!(parsed(&error, Dialect::SageMaker), json!({ "Message": "HTTP content length exceeded 6291456 bytes." }));
    assert_eq!((error.status(Dialect::SageMaker), error.name()), (413, None));
}

#[test]
fn a_containers_client_error_is_told_with_its_status_and_body() {
    let body = r#"{"error":"too long"}"#;
    let error = model("primary", Fault::Answered { status: 400, body: body.into() });
    let message = format!("Received client error (400) from primary with message \"{body}\". {SEE}");
    let expected = json!({
        "ErrorCode": "CLIENT_ERROR_FROM_MODEL",
        "LogStreamArn": "arn:aws:logs:us-west-2:123456789012:log-group:/aws/sagemaker/Endpoints/my-ep",
        "Message": message,
        "OriginalMessage": body,
        "OriginalStatusCode": 400,
    });
    assert_eq!(parsed(&error, Dialect::SageMaker), expected);
    assert_eq!((error.status(Dialect::SageMaker), error.name()), (424, Some("ModelError")));
    let openai = json!({"error": {"message": message, "type": "server_error", "code": "model_error"}});
    assert_eq!(parsed(&error, Dialect::SageMakerOpenAi), openai);
    assert_eq!(error.status(Dialect::SageMakerOpenAi), 400);
}

#[test]
fn a_containers_server_error_is_told_as_one() {
    let error = model("llama-1", Fault::Answered { status: 500, body: "oops".into() });
    let body = parsed(&error, Dialect::SageMaker);
    assert_eq!(body["Message"], format!("Received server error (500) from llama-1 with message \"oops\". {SEE}"));
    assert_eq!((&body["ErrorCode"], &body["OriginalStatusCode"]), (&json!("SERVER_ERROR_FROM_MODEL"), &json!(500)));
    let error = model("primary", Fault::BodyBrokeOff { status: 500 });
    let message =
        format!("Received server error (500) from primary and could not load the entire response body. {SEE}");
    assert_eq!(parsed(&error, Dialect::SageMaker)["Message"], message);
}

#[test]
fn a_container_that_was_silent_has_status_0() {
    let error = model("primary", Fault::TimedOut);
    let message = format!(
        "Received server error (0) from primary with message \"Your invocation timed out while waiting for a response \
         from container primary. Review the latency metrics for each container in Amazon CloudWatch, resolve the issue, \
         and try again.\". {SEE}"
    );
    let body = parsed(&error, Dialect::SageMaker);
    assert_eq!((&body["Message"], &body["OriginalStatusCode"]), (&json!(message), &json!(0)));
    assert!(error.may_have_generated());
    assert_eq!(error.status(Dialect::SageMakerOpenAi), 504);
    let error = model("primary", Fault::NoAnswer);
    let message = parsed(&error, Dialect::SageMaker)["Message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("Amazon SageMaker could not get a response from the my-ep endpoint. This can occur"));
    assert_eq!(error.status(Dialect::SageMakerOpenAi), 502);
    let answered = model("primary", Fault::Answered { status: 503, body: String::new() });
    assert!(!answered.may_have_generated());
}
