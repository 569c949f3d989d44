//! Errors as clients will read them.

use serde_json::Value;

use super::*;

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

#[test]
fn openai_errors_have_all_four_members() {
    let error = ErrorBody::new(ErrorKind::ModelNotFound, "no instance serves the model `x`").with_param("model");
    let expected = json!({"error": {
        "message": "no instance serves the model `x`",
        "type": "not_found_error",
        "param": "model",
        "code": "model_not_found",
    }});
    assert_eq!(parsed(&error.to_json(Dialect::OpenAi)), expected);

    let error = ErrorBody::new(ErrorKind::InvalidRequest, "?");
    let expected = json!({"error": {"message": "?", "type": "invalid_request_error", "param": null, "code": null}});
    assert_eq!(parsed(&error.to_json(Dialect::OpenAi)), expected);
}

#[test]
fn anthropic_errors_have_a_type_twice() {
    let error = ErrorBody::new(ErrorKind::TooManyRequests, "the queue is full").with_param("ignored");
    let expected = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "the queue is full"}});
    assert_eq!(parsed(&error.to_json(Dialect::Anthropic)), expected);
}

#[test]
fn sagemaker_errors_are_a_message_and_a_header() {
    let error = ErrorBody::new(ErrorKind::Unavailable, "no instance is in service");
    assert_eq!(parsed(&error.to_json(Dialect::SageMaker)), json!({"Message": "no instance is in service"}));
    assert_eq!(error.kind.sagemaker_type(), Some("ServiceUnavailable"));
    assert_eq!(error.kind.status(Dialect::SageMaker), 503);

    let error = ErrorBody::new(ErrorKind::GatewayTimeout, "timed out");
    let expected = json!({"Message": "timed out", "OriginalStatusCode": 0, "OriginalMessage": ""});
    assert_eq!(parsed(&error.to_json(Dialect::SageMaker)), expected);
    assert_eq!((error.kind.status(Dialect::SageMaker), error.kind.sagemaker_type()), (424, Some("ModelError")));
}

#[test]
fn sagemakers_openai_errors_have_codes_of_their_own() {
    let of = |kind: ErrorKind| parsed(&ErrorBody::new(kind, "?").to_json(Dialect::SageMakerOpenAi));
    let expected = json!({"error": {"message": "?", "type": "invalid_request_error", "code": "validation_error"}});
    assert_eq!(of(ErrorKind::InvalidRequest), expected);
    let expected = json!({"error": {"message": "?", "type": "server_error", "code": "model_error"}});
    assert_eq!(of(ErrorKind::BadGateway), expected);
    assert_eq!(of(ErrorKind::Authentication)["error"]["code"], "invalid_api_key");
    assert_eq!(ErrorKind::Authentication.status(Dialect::SageMakerOpenAi), 401);
    assert_eq!(ErrorKind::NotFound.status(Dialect::SageMakerOpenAi), 400);
    let expected = json!({"error": {"message": "?", "type": "authentication_error", "code": "expired_token"}});
    assert_eq!(of(ErrorKind::Expired), expected);
    assert_eq!(ErrorKind::Expired.status(Dialect::SageMakerOpenAi), 401);
}

#[test]
fn messages_are_escaped_in_every_dialect() {
    let message = "a \"quoted\"\nline \u{1} 你";
    let error = ErrorBody::new(ErrorKind::InvalidRequest, message);
    for (dialect, pointer) in
        [(Dialect::OpenAi, "/error/message"), (Dialect::Anthropic, "/error/message"), (Dialect::SageMaker, "/Message")]
    {
        let body = parsed(&error.to_json(dialect));
        assert_eq!(body.pointer(pointer), Some(&json!(message)));
    }
}

#[test]
fn every_kind_has_the_status_of_an_error() {
    for kind in ErrorKind::ALL {
        for dialect in [Dialect::OpenAi, Dialect::Anthropic, Dialect::SageMaker, Dialect::SageMakerOpenAi] {
            assert!((400..600).contains(&kind.status(dialect)), "{kind:?} {dialect:?}");
        }
    }
    assert_eq!(ErrorKind::Authentication.status(Dialect::OpenAi), 401);
    assert_eq!(ErrorKind::Authentication.status(Dialect::SageMaker), 403);
    assert_eq!(ErrorKind::NotFound.status(Dialect::SageMaker), 400);
}

#[test]
fn a_client_reads_back_the_status_of_an_error_event() {
    for kind in [ErrorKind::TooManyRequests, ErrorKind::InvalidRequest, ErrorKind::Unavailable, ErrorKind::Internal] {
        let body = ErrorBody::new(kind, "?").to_json(Dialect::OpenAi);
        assert_eq!(status_of_error(&body), kind.status(Dialect::OpenAi), "{kind:?}");
    }
}

#[test]
fn a_broken_stream_ends_with_an_event_that_clients_understand() {
    let error = ErrorBody::new(ErrorKind::BadGateway, "the instance\nbroke off");
    let events = String::from_utf8(error.to_events(Dialect::OpenAi)).expect("text");
    let data =
        events.strip_prefix("data: ").and_then(|rest| rest.strip_suffix("\n\ndata: [DONE]\n\n")).expect("framed");
    assert!(!data.contains('\n'));
    assert_eq!(parsed(data.as_bytes()).pointer("/error/code"), Some(&json!("bad_gateway")));

    let events = String::from_utf8(error.to_events(Dialect::Anthropic)).expect("text");
    let data = events.strip_prefix("event: error\ndata: ").and_then(|rest| rest.strip_suffix("\n\n")).expect("framed");
    assert_eq!(parsed(data.as_bytes()).pointer("/error/type"), Some(&json!("api_error")));
}
