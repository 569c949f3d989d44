//! The head of a request as it is written to an instance.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Uri};
use isotherm_fleet::Instance;

use crate::headers::{self, REQUEST_ID};

/// A request to be sent to whichever instance is chosen: the client's, as it came.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    /// The method.
    pub(crate) method: Method,
    /// The client's target; only its path and query are sent.
    pub(crate) uri: Uri,
    /// The client's headers; what does not pass is left out when they are written.
    pub(crate) headers: HeaderMap,
    /// The id that instance and client are told.
    pub(crate) request_id: HeaderValue,
    /// Whether the client's credentials pass: only where the router does not authenticate.
    pub(crate) credentials_pass: bool,
    /// The body, byte for byte.
    pub(crate) body: Bytes,
}

impl Outgoing {
    /// The head as it goes to this instance.
    pub(crate) fn head(&self, instance: &Instance) -> Vec<u8> {
        let mut head = Vec::with_capacity(1_024);
        head.extend_from_slice(self.method.as_str().as_bytes());
        head.push(b' ');
        head.extend_from_slice(instance.address().base_path().as_bytes());
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        head.extend_from_slice(target.as_bytes());
        head.extend_from_slice(b" HTTP/1.1\r\n");
        write(&mut head, header::HOST.as_str(), instance.address().authority());
        let credentials_pass = self.credentials_pass && instance.authorization().is_none();
        for (name, value) in headers::for_instance(&self.headers, credentials_pass) {
            write(&mut head, name.as_str(), value);
        }
        if let Some(authorization) = instance.authorization() {
            write(&mut head, header::AUTHORIZATION.as_str(), authorization);
        }
        write(&mut head, REQUEST_ID.as_str(), &self.request_id);
        if !self.body.is_empty() || self.method == Method::POST {
            write(&mut head, header::CONTENT_LENGTH.as_str(), &HeaderValue::from(self.body.len()));
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

fn write(head: &mut Vec<u8>, name: &str, value: &HeaderValue) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value.as_bytes());
    head.extend_from_slice(b"\r\n");
}
