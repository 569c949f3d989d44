//! The three protocols in which CloudWatch is spoken: JSON 1.0, CBOR, and forms answered in XML.

mod cbor;
mod query;
#[cfg(test)]
mod tests;

use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use isotherm_wire::aws::AwsRequest;

use crate::Refusal;
use crate::document::Document;

/// The namespace of CloudWatch's XML.
const XML_NAMESPACE: &str = "http://monitoring.amazonaws.com/doc/2010-08-01/";

/// What precedes the operation's name in `X-Amz-Target`.
const TARGET: &str = "GraniteServiceVersion20100801.";

/// What precedes the operation's name in the path of the CBOR protocol.
const CBOR_PATH: &str = "/service/GraniteServiceVersion20100801/operation/";

/// The longest body after decompression: CloudWatch takes 1 MB as it comes, and repetitive JSON shrinks to a tenth.
const LONGEST_BODY: u64 = 10 << 20;

/// How a request was sent, and so how it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// AWS JSON 1.0, of the AWS CLI and boto3.
    Json,
    /// Smithy RPC v2 CBOR, of newer SDKs.
    Cbor,
    /// A form, answered in XML; of older SDKs.
    Query,
}

/// An operation and its input.
#[derive(Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) operation: String,
    pub(crate) input: Document,
}

impl Protocol {
    /// The protocol that a request is sent in.
    pub(crate) fn of(request: &AwsRequest) -> Protocol {
        if request.head.uri.path().starts_with("/service/") {
            Protocol::Cbor
        } else if request.head.headers.contains_key("x-amz-target") {
            Protocol::Json
        } else {
            Protocol::Query
        }
    }

    /// Reads a request.
    ///
    /// # Errors
    ///
    /// The refusal of a body that can't be read.
    pub(crate) fn read(self, request: &AwsRequest) -> Result<Asked, Refusal> {
        let body = decompressed(&request.head.headers, &request.body)?;
        match self {
            Protocol::Json => {
                let target = request.head.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
                let operation = target.and_then(|target| target.strip_prefix(TARGET)).unwrap_or_default().to_owned();
                Ok(Asked { operation, input: read_json(&body)? })
            }
            Protocol::Cbor => {
                let operation = request.head.uri.path().strip_prefix(CBOR_PATH).unwrap_or_default().to_owned();
                Ok(Asked { operation, input: cbor::read(&body)? })
            }
            Protocol::Query if request.head.method == Method::GET => {
                query::read(request.head.uri.query().unwrap_or_default().as_bytes())
            }
            Protocol::Query => query::read(&body),
        }
    }

    /// The answer to an operation.
    pub(crate) fn answer(self, operation: &str, result: Result<Document, Refusal>, id: &str) -> Response<Bytes> {
        let mut response = match &result {
            Ok(output) => Response::new(self.output(operation, output, id)),
            Err(refusal) => self.refused(refusal, id),
        };
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type()));
        set(headers, "x-amzn-requestid", id);
        if self == Protocol::Cbor {
            headers.insert("smithy-protocol", HeaderValue::from_static("rpc-v2-cbor"));
        }
        response
    }

    fn output(self, operation: &str, output: &Document, id: &str) -> Bytes {
        match self {
            // An operation without output answers with an empty body.
            Protocol::Json if *output == Document::Null => Bytes::new(),
            Protocol::Json => output.to_json().into(),
            Protocol::Cbor => cbor::written(output).into(),
            Protocol::Query => query::written(operation, output, id).into(),
        }
    }

    fn refused(self, refusal: &Refusal, id: &str) -> Response<Bytes> {
        let shape = format!("com.amazonaws.cloudwatch#{}", refusal.shape);
        let error = Document::structure([("__type", shape.into()), ("message", refusal.message.as_str().into())]);
        let body = match self {
            Protocol::Json => error.to_json(),
            Protocol::Cbor => cbor::written(&error),
            Protocol::Query => query::refused(refusal, id),
        };
        let mut response = Response::new(body.into());
        *response.status_mut() = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if self != Protocol::Query {
            set(response.headers_mut(), "x-amzn-query-error", &format!("{};{}", refusal.code, refusal.fault()));
        }
        response
    }

    const fn content_type(self) -> &'static str {
        match self {
            Protocol::Json => "application/x-amz-json-1.0",
            Protocol::Cbor => "application/cbor",
            Protocol::Query => "text/xml",
        }
    }
}

fn read_json(body: &[u8]) -> Result<Document, Refusal> {
    Document::from_json(body).map_err(|error| Refusal::serialization(format!("The body is no JSON: {error}.")))
}

/// The body as it was before compression.
fn decompressed(headers: &HeaderMap, body: &Bytes) -> Result<Bytes, Refusal> {
    match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => Ok(body.clone()),
        Some(b"gzip") => {
            let mut plain = Vec::new();
            let read = GzDecoder::new(&body[..]).take(LONGEST_BODY + 1).read_to_end(&mut plain);
            read.map_err(|error| Refusal::serialization(format!("The body is no gzip: {error}.")))?;
            if plain.len() as u64 > LONGEST_BODY {
                let message = format!("The body is longer than {LONGEST_BODY} bytes once decompressed.");
                return Err(Refusal::serialization(message));
            }
            Ok(plain.into())
        }
        Some(other) => {
            let encoding = String::from_utf8_lossy(other);
            Err(Refusal::serialization(format!("Content-Encoding {encoding} is not known: use gzip, or none.")))
        }
    }
}

fn set(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}
