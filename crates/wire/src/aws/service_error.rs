//! Errors that are the same for every service of AWS's, in the form that each protocol has for them.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use serde_json::json;

use super::protocol::Protocol;

/// The name of an error, by which SDKs choose the exception.
const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");

/// An error as it will be told to a client of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceError {
    /// The HTTP status.
    pub status: u16,
    /// Its name, such as `InvalidSignatureException`.
    pub code: Cow<'static, str>,
    /// What was wrong and what would be right.
    pub message: Cow<'static, str>,
}

impl ServiceError {
    /// An error of this status, name and text.
    pub fn new(status: u16, code: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> ServiceError {
        ServiceError { status, code: code.into(), message: message.into() }
    }

    /// The answer in the form of a protocol.
    pub fn response(&self, protocol: Protocol, request_id: &str) -> Response<Bytes> {
        let (content_type, body) = match protocol {
            Protocol::Json10 => ("application/x-amz-json-1.0", self.json()),
            Protocol::Json11 => ("application/x-amz-json-1.1", self.json()),
            Protocol::Rest => ("application/json", self.json()),
            Protocol::Query => ("text/xml", self.xml(request_id).into_bytes()),
            Protocol::Cbor => ("application/cbor", self.cbor()),
        };
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if let (Protocol::Json10 | Protocol::Json11 | Protocol::Rest, Ok(code)) = (protocol, self.code.parse()) {
            headers.insert(ERROR_TYPE, code);
        }
        if protocol == Protocol::Cbor {
            headers.insert("smithy-protocol", HeaderValue::from_static("rpc-v2-cbor"));
        }
        response
    }

    fn json(&self) -> Vec<u8> {
        json!({ "__type": self.code, "message": self.message }).to_string().into_bytes()
    }

    fn xml(&self, request_id: &str) -> String {
        let blame = if self.status < 500 { "Sender" } else { "Receiver" };
        format!(
            "<ErrorResponse>\n  <Error>\n    <Type>{blame}</Type>\n    <Code>{}</Code>\n    <Message>{}</Message>\n  \
             </Error>\n  <RequestId>{}</RequestId>\n</ErrorResponse>\n",
            escape_xml(self.query_code()),
            escape_xml(&self.message),
            escape_xml(request_id),
        )
    }

    /// The name that the query protocol has for it (IAM's "Common errors"): without `Exception` at its end, and some of
    /// their own.
    fn query_code(&self) -> &str {
        match &*self.code {
            "InvalidSignatureException" => "SignatureDoesNotMatch",
            "UnrecognizedClientException" => "InvalidClientTokenId",
            code => code.strip_suffix("Exception").unwrap_or(code),
        }
    }

    /// A map of two texts (RFC 8949).
    fn cbor(&self) -> Vec<u8> {
        let mut bytes = vec![0xa2];
        for text in ["__type", &*self.code, "message", &*self.message] {
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
            bytes.push(0x7a);
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }
}

/// Text as it stands in an XML document. What XML can't hold at all becomes the replacement character.
pub fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // As they are, a parser would take line ends for others, and blanks in attributes for spaces.
            '\t' => escaped.push_str("&#9;"),
            '\n' => escaped.push_str("&#10;"),
            '\r' => escaped.push_str("&#13;"),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(protocol: Protocol) -> (u16, String, Vec<u8>) {
        let error = ServiceError::new(403, "InvalidSignatureException", "a <b> & \"c\"");
        let (head, body) = error.response(protocol, "id-1").into_parts();
        let content_type = head.headers["content-type"].to_str().unwrap().to_owned();
        assert_eq!(head.headers.contains_key(ERROR_TYPE), !matches!(protocol, Protocol::Query | Protocol::Cbor));
        (head.status.as_u16(), content_type, body.to_vec())
    }

    #[test]
    fn each_protocol_has_its_form() {
        let json = br#"{"__type":"InvalidSignatureException","message":"a <b> & \"c\""}"#.to_vec();
        assert_eq!(response(Protocol::Json11), (403, "application/x-amz-json-1.1".into(), json.clone()));
        assert_eq!(response(Protocol::Rest), (403, "application/json".into(), json));
        let (_, content_type, xml) = response(Protocol::Query);
        let xml = String::from_utf8(xml).unwrap();
        assert_eq!(content_type, "text/xml");
        assert!(xml.contains("<Type>Sender</Type>") && xml.contains("<Code>SignatureDoesNotMatch</Code>"), "{xml}");
        assert!(xml.contains("<Message>a &lt;b&gt; &amp; &quot;c&quot;</Message>"), "{xml}");
        assert!(xml.contains("<RequestId>id-1</RequestId>"), "{xml}");
        for (code, in_query) in [
            ("UnrecognizedClientException", "InvalidClientTokenId"),
            ("MissingAuthenticationTokenException", "MissingAuthenticationToken"),
            ("InvalidAction", "InvalidAction"),
        ] {
            assert_eq!(ServiceError::new(403, code, "").query_code(), in_query);
        }
        let (_, _, cbor) = response(Protocol::Cbor);
        assert_eq!(&cbor[..12], b"\xa2\x7a\x00\x00\x00\x06__type");
        assert_eq!(&cbor[12..17], b"\x7a\x00\x00\x00\x19");
        assert!(cbor.ends_with(b"a <b> & \"c\""));
    }
}
