//! What every service of AWS's that the router speaks has in common: who calls, what is asked, and what is answered.

mod asked;
mod protocol;
mod service_error;
mod uuid;

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::Response;
use http::request::Parts;

use crate::sigv4::form_pairs;

pub use self::asked::{Asked, Service};
pub use self::protocol::{Protocol, TARGET};
pub use self::service_error::{ServiceError, escape_xml};
pub use self::uuid::uuid;

/// The fields of a form, names and values without their escapes, in order; `None` where one is no text.
pub fn form_fields(form: &[u8]) -> Option<Vec<(String, String)>> {
    let text = std::str::from_utf8(form).ok()?;
    let field = |(name, value)| Some((String::from_utf8(name).ok()?, String::from_utf8(value).ok()?));
    form_pairs(text).map(field).collect()
}

/// A request to one of AWS's services whose sender is known.
#[derive(Debug)]
pub struct AwsRequest {
    /// Method, path, query and headers as they came.
    pub head: Parts,
    /// The body, whole, as it came (still compressed where the client compressed it).
    pub body: Bytes,
    /// Who sends it.
    pub caller: Caller,
}

/// On whose behalf a request to a service of AWS's comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The account, twelve digits: resources belong to it.
    pub account: String,
    /// The region that the request was signed for; what ARNs are made with.
    pub region: String,
    /// The access key that it was signed with; `None` where the router authenticates nobody and nothing was signed.
    pub access_key: Option<String>,
    /// The name that the key has in the router's configuration.
    pub name: Option<String>,
}

impl Caller {
    /// The caller as IAM names users: the key's name, or the account itself where it has none.
    pub fn arn(&self) -> String {
        match &self.name {
            Some(name) => format!("arn:aws:iam::{}:user/{name}", self.account),
            None => format!("arn:aws:iam::{}:root", self.account),
        }
    }
}

/// An answer that is being worked out.
pub type Answering = Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>;

/// One of AWS's services: the control plane, CloudWatch, Application Auto Scaling, STS.
pub trait AwsService: Send + Sync {
    /// Answers a request; errors are answers, too, in the service's own form.
    fn call(&self, request: AwsRequest) -> Answering;
}
