//! Requests to SageMaker's control plane and AWS's other services: handed over whole to what answers them.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use isotherm_telemetry::Outcome;
use isotherm_wire::aws::{AwsRequest, AwsService};

use crate::rescue::Failure;
use crate::stage::authenticate::{Authenticated, authorize_service};
use crate::stage::finish::Record;
use crate::upload::body_limit;

/// What answers AWS's services.
#[derive(Clone)]
pub(crate) struct FrontDoor(pub(crate) Arc<dyn AwsService>);

impl fmt::Debug for FrontDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FrontDoor")
    }
}

/// The service's answer to a request whose sender is known.
pub(crate) async fn answer(request: Authenticated, record: &mut Record) -> Result<Response<Bytes>, Failure> {
    let Some(FrontDoor(service)) = record.worker.aws.clone() else { return Err(Failure::NoSuchPath) };
    let Authenticated { route, head, body, .. } = request;
    let body = body.whole(body_limit(&route, &record.rules.limits), record).await?;
    authorize_service(&head, &body, record)?;
    let response = service.call(AwsRequest { head: *head, body, caller: record.caller() }).await;
    record.status = Some(response.status().as_u16());
    record.bytes_out = response.body().len() as u64;
    record.end(match response.status().as_u16() {
        500.. => Outcome::InternalError,
        400.. => Outcome::Refused,
        _ => Outcome::Ok,
    });
    Ok(response)
}
