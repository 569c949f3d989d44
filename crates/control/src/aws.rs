//! The front door of AWS's services: SageMaker's control plane, CloudWatch, Application Auto Scaling and STS, all at one
//! address.

mod elsewhere;
mod request_id;
mod sts;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::HeaderName;
use http::{HeaderValue, Response};
use isotherm_wire::aws::{Answering, Asked, AwsRequest, AwsService, Protocol, Service, ServiceError};
use tokio::runtime::Handle;

use self::request_id::request_id;

/// The id of a request, which AWS's support would ask for.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");

/// Hands every request to its service, and answers itself what no service is there for.
#[derive(Debug)]
pub struct FrontDoor {
    services: Services,
    runtime: Handle,
}

/// What stands behind the front door.
#[derive(Clone)]
pub struct Services {
    /// SageMaker's control plane.
    pub sagemaker: Arc<dyn AwsService>,
    /// Metrics and alarms.
    pub cloudwatch: Arc<dyn AwsService>,
    /// Scaling policies.
    pub autoscaling: Arc<dyn AwsService>,
}

impl FrontDoor {
    /// A front door that works its answers out on this runtime, so that one which takes long holds up nobody who asks on
    /// another, and one whose client leaves is finished all the same.
    pub fn new(services: Services, runtime: Handle) -> FrontDoor {
        FrontDoor { services, runtime }
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Services")
    }
}

impl AwsService for FrontDoor {
    fn call(&self, request: AwsRequest) -> Answering {
        let (protocol, id) = (Protocol::of(&request.head), request_id());
        let services = self.services.clone();
        let working = self.runtime.spawn(answer(services, request, id.clone()));
        Box::pin(async move {
            let answered = working.await;
            let response = answered.unwrap_or_else(|_| {
                ServiceError::new(500, "InternalFailure", "the router failed on this request").response(protocol, &id)
            });
            with_request_id(response, &id)
        })
    }
}

async fn answer(services: Services, request: AwsRequest, id: String) -> Response<Bytes> {
    let Asked { service, operation } = Asked::of(&request.head, &request.body);
    match service {
        Service::SageMaker => services.sagemaker.call(request).await,
        Service::CloudWatch => services.cloudwatch.call(request).await,
        Service::AutoScaling => services.autoscaling.call(request).await,
        Service::Sts => sts::answer(&operation, &request.caller, &id),
        Service::Other(name) => elsewhere::answer(&name, Protocol::of(&request.head), &id),
    }
}

/// The answer with an id, unless its service gave it one.
fn with_request_id(mut response: Response<Bytes>, id: &str) -> Response<Bytes> {
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().entry(REQUEST_ID).or_insert(id);
    }
    response
}

#[cfg(test)]
mod tests;
