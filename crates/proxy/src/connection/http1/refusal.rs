//! The answer to bytes that are no request, in the words of the API.

use isotherm_config::Limits;
use isotherm_wire::error::{Dialect, ErrorBody, ErrorKind};

use super::request_head::NoRequest;
use crate::worker::Worker;

/// A whole answer in OpenAI's form: nothing is known of a request but that it was to be one.
pub(super) fn in_words(no_request: NoRequest, limits: &Limits, worker: &Worker) -> Vec<u8> {
    let (status, kind, message) = match no_request {
        NoRequest::Malformed => {
            ("400 Bad Request", ErrorKind::InvalidRequest, "what came is no request of HTTP/1.1 (RFC 9112)".to_owned())
        }
        NoRequest::TargetTooLong => {
            let message = format!("path and query are longer than {} bytes", limits.uri);
            ("414 URI Too Long", ErrorKind::UriTooLong, message)
        }
        NoRequest::TooLarge => {
            let message = format!("the headers are larger than {} bytes, or too many", limits.headers);
            ("431 Request Header Fields Too Large", ErrorKind::HeadersTooLarge, message)
        }
    };
    let body = ErrorBody::new(kind, message).to_json(Dialect::OpenAi);
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\ndate: "
    )
    .into_bytes();
    worker.with_date(|date| answer.extend_from_slice(date));
    answer.extend_from_slice(b"\r\n\r\n");
    answer.extend_from_slice(&body);
    answer
}
