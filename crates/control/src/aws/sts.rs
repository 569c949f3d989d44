//! The Security Token Service, as far as SageMaker's clients need it: who am I?

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use isotherm_wire::aws::{Caller, Protocol, ServiceError, escape_xml};

/// Answers an operation.
pub(super) fn answer(operation: &str, caller: &Caller, request_id: &str) -> Response<Bytes> {
    if operation != "GetCallerIdentity" {
        let message = format!("Isotherm knows GetCallerIdentity and no other operation of STS, so not {operation:?}.");
        return ServiceError::new(400, "InvalidAction", message).response(Protocol::Query, request_id);
    }
    let mut response = Response::new(Bytes::from(identity(caller, request_id)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/xml"));
    response
}

fn identity(caller: &Caller, request_id: &str) -> String {
    // The account's own root user has the account's number for an id.
    let user = caller.name.as_ref().and(caller.access_key.as_deref()).unwrap_or(&caller.account);
    format!(
        r#"<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <GetCallerIdentityResult>
    <Arn>{}</Arn>
    <UserId>{}</UserId>
    <Account>{}</Account>
  </GetCallerIdentityResult>
  <ResponseMetadata>
    <RequestId>{}</RequestId>
  </ResponseMetadata>
</GetCallerIdentityResponse>
"#,
        escape_xml(&caller.arn()),
        escape_xml(user),
        escape_xml(&caller.account),
        escape_xml(request_id),
    )
}
