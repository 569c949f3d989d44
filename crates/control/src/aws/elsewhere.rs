//! What a client is told whose service is not here: which are, and how to point only those at the router.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use isotherm_wire::aws::{Protocol, ServiceError, escape_xml};

/// The answer for a service that is called `name`.
pub(super) fn answer(name: &str, protocol: Protocol, request_id: &str) -> Response<Bytes> {
    let message = format!(
        "Isotherm serves SageMaker, its runtime, CloudWatch, Application Auto Scaling and STS, but not {name:?}. Leave \
         AWS_ENDPOINT_URL unset for that one: AWS_ENDPOINT_URL_SAGEMAKER, AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME, \
         AWS_ENDPOINT_URL_CLOUDWATCH, AWS_ENDPOINT_URL_APPLICATION_AUTO_SCALING and AWS_ENDPOINT_URL_STS point single \
         services at the router."
    );
    match (name, protocol) {
        ("s3", _) => xml(format!(
            "<Error><Code>NotImplemented</Code><Message>{}</Message><RequestId>{}</RequestId></Error>",
            escape_xml(&message),
            escape_xml(request_id)
        )),
        ("ec2", _) => xml(format!(
            "<Response><Errors><Error><Code>InvalidAction</Code><Message>{}</Message></Error></Errors>\
             <RequestID>{}</RequestID></Response>",
            escape_xml(&message),
            escape_xml(request_id)
        )),
        (_, Protocol::Query) => ServiceError::new(400, "InvalidAction", message).response(protocol, request_id),
        _ => ServiceError::new(400, "UnknownOperationException", message).response(protocol, request_id),
    }
}

/// 501 is a status that SDKs do not try again after.
fn xml(document: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(document));
    *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    response
}
