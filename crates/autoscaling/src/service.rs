//! Application Auto Scaling as a service: AWS JSON 1.1.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use isotherm_cloudwatch::CloudWatch;
use isotherm_cloudwatch::document::Document;
use isotherm_store::{Store, StoreError};
use isotherm_wire::aws::{Answering, AwsRequest, AwsService};
use parking_lot::{Mutex, MutexGuard};

use crate::book::{Book, Key};
use crate::error::Refusal;
use crate::operation::{self, Call};
use crate::resource::ScalableResources;

/// What precedes the operation's name in `X-Amz-Target`.
const TARGET: &str = "AnyScaleFrontendService.";

type Operation = fn(&AutoScaling, Call<'_>, &Document) -> Result<Document, Refusal>;

/// Every operation.
pub(crate) const OPERATIONS: [(&str, Operation); 10] = [
    ("DeleteScalingPolicy", operation::delete_scaling_policy),
    ("DeregisterScalableTarget", operation::deregister_scalable_target),
    ("DescribeScalableTargets", operation::describe_scalable_targets),
    ("DescribeScalingActivities", operation::describe_scaling_activities),
    ("DescribeScalingPolicies", operation::describe_scaling_policies),
    ("ListTagsForResource", operation::list_tags_for_resource),
    ("PutScalingPolicy", operation::put_scaling_policy),
    ("RegisterScalableTarget", operation::register_scalable_target),
    ("TagResource", operation::tag_resource),
    ("UntagResource", operation::untag_resource),
];

/// Scalable targets and their policies. Cheap to clone: all clones are the same.
#[derive(Clone)]
pub struct AutoScaling {
    shared: Arc<Shared>,
}

struct Shared {
    book: Mutex<Book>,
    cloudwatch: CloudWatch,
    resources: Arc<dyn ScalableResources>,
}

impl AutoScaling {
    /// With the targets and policies that the store has; without a store they end with the process.
    ///
    /// # Errors
    ///
    /// Those of reading the store.
    pub fn open(
        store: Option<Arc<Store>>,
        cloudwatch: CloudWatch,
        resources: Arc<dyn ScalableResources>,
    ) -> Result<AutoScaling, StoreError> {
        let book = Mutex::new(Book::open(store)?);
        Ok(AutoScaling { shared: Arc::new(Shared { book, cloudwatch, resources }) })
    }

    /// The answer to a request that comes at `now`, in seconds of Unix time.
    pub async fn answer(&self, request: &AwsRequest, now: u64) -> Response<Bytes> {
        response(self.result(request, now).await)
    }

    async fn result(&self, request: &AwsRequest, now: u64) -> Result<Document, Refusal> {
        let target = request.head.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
        let name = target.and_then(|target| target.strip_prefix(TARGET)).unwrap_or_default();
        let known = OPERATIONS.iter().find(|(known, _)| *known == name);
        let (_, operation) = known.ok_or_else(|| Refusal::unknown_operation(name))?;
        let input = Document::from_json(&request.body).map_err(|error| Refusal {
            shape: "SerializationException",
            message: format!("The body is no JSON: {error}."),
        })?;
        let call = Call { caller: &request.caller, now };
        if name == "RegisterScalableTarget" {
            operation::check_existence(&*self.shared.resources, call, &input).await?;
        }
        operation(self, call, &input)
    }

    pub(crate) fn resources(&self) -> &dyn ScalableResources {
        &*self.shared.resources
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.shared.book.lock()
    }

    /// Takes a target away, with its policies and their alarms; false when there is none.
    pub(crate) fn remove_target(&self, key: &Key) -> Result<bool, Refusal> {
        let mut book = self.book();
        let Some(entry) = book.remove_target(key)? else { return Ok(false) };
        operation::forget(&self.shared.cloudwatch, &key.0, entry.policies.values())?;
        Ok(true)
    }

    pub(crate) fn cloudwatch(&self) -> &CloudWatch {
        &self.shared.cloudwatch
    }
}

impl AwsService for AutoScaling {
    fn call(&self, request: AwsRequest) -> Answering {
        let service = self.clone();
        Box::pin(async move { service.answer(&request, unix_time()).await })
    }
}

impl fmt::Debug for AutoScaling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AutoScaling").finish_non_exhaustive()
    }
}

fn response(result: Result<Document, Refusal>) -> Response<Bytes> {
    let (status, body) = match result {
        Ok(output) => (200, output),
        Err(refusal) => {
            let (shape, message) = (refusal.shape.into(), refusal.message.as_str().into());
            (refusal.status(), Document::structure([("__type", shape), ("Message", message)]))
        }
    };
    let mut response = Response::new(Bytes::from(body.to_json()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.1"));
    response
}

/// Seconds of Unix time.
pub(crate) fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// A random UUID, as AWS numbers targets, policies and activities.
pub(crate) fn random_id() -> String {
    let mut random = [0; 16];
    // Without random numbers nothing has a name of its own, which harms only those who tell things apart by it.
    let _ = getrandom::fill(&mut random);
    let hex = format!("{:032x}", u128::from_be_bytes(random));
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
