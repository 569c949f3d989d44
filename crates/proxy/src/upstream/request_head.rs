//! The head of a request as it is written to an instance.

use bytes::Bytes;
use http::Method;
use http::header::{self, HeaderValue};
use http::request::Parts;
use isotherm_fleet::Instance;

use crate::headers::{self, REQUEST_ID};

/// A request to be sent to whichever instance is chosen: the client's, as it came.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    /// The client's method, target, of which only path and query are sent, and headers; what does not pass of those is
    /// left out when they are written.
    pub(crate) head: Box<Parts>,
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
        let Parts { method, uri, headers, .. } = &*self.head;
        let mut head = Vec::with_capacity(1_024);
        head.extend_from_slice(method.as_str().as_bytes());
        head.push(b' ');
        head.extend_from_slice(instance.address().base_path().as_bytes());
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        head.extend_from_slice(target.as_bytes());
        head.extend_from_slice(b" HTTP/1.1\r\n");
        write(&mut head, header::HOST.as_str(), instance.address().authority());
        let credentials_pass = self.credentials_pass && instance.authorization().is_none();
        for (name, value) in headers::for_instance(headers, credentials_pass) {
            write(&mut head, name.as_str(), value);
        }
        if let Some(authorization) = instance.authorization() {
            write(&mut head, header::AUTHORIZATION.as_str(), authorization);
        }
        write(&mut head, REQUEST_ID.as_str(), &self.request_id);
        if !self.body.is_empty() || *method == Method::POST {
            head.extend_from_slice(b"content-length: ");
            write_number(&mut head, self.body.len() as u64, 10);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// Writes a number's digits to a base of at most 16.
pub(crate) fn write_number(head: &mut Vec<u8>, mut number: u64, base: u64) {
    let start = head.len();
    loop {
        head.push(b"0123456789abcdef"[(number % base) as usize]);
        number /= base;
        if number == 0 {
            break;
        }
    }
    head[start..].reverse();
}

fn write(head: &mut Vec<u8>, name: &str, value: &HeaderValue) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value.as_bytes());
    head.extend_from_slice(b"\r\n");
}
