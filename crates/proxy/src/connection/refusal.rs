//! What the HTTP library answers by itself to bytes that are no request, put into the words of the API.

use bytes::Bytes;
use isotherm_wire::error::{Dialect, ErrorBody, ErrorKind};

/// The limits that such an answer tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeadLimits {
    /// Bytes of all headers together.
    pub(super) headers: u64,
    /// Bytes of path and query.
    pub(super) uri: u64,
}

/// The library's own line for a body that is empty.
const NO_BODY: &str = "content-length: 0\r\n";

/// The same answer with an error as its body, in OpenAI's form: nothing is known of a request but that it was to be one.
/// `None` where the bytes are no answer without a body.
pub(super) fn in_words(written: &[u8], limits: HeadLimits) -> Option<Bytes> {
    let head = std::str::from_utf8(written).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?;
    let (kind, message) = match status {
        "400" => (ErrorKind::InvalidRequest, "what came is no request of HTTP/1.1 (RFC 9112)".to_owned()),
        "414" => (ErrorKind::UriTooLong, format!("path and query are longer than {} bytes", limits.uri)),
        "431" => {
            let HeadLimits { headers, .. } = limits;
            (ErrorKind::HeadersTooLarge, format!("the headers are larger than {headers} bytes, or too many"))
        }
        _ => return None,
    };
    let (before, behind) = head.split_once(NO_BODY)?;
    if !behind.ends_with("\r\n") {
        return None;
    }
    let body = ErrorBody::new(kind, message).to_json(Dialect::OpenAi);
    let headers = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    Some([before.as_bytes(), headers.as_bytes(), behind.as_bytes(), &body].concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HeadLimits = HeadLimits { headers: 100, uri: 50 };

    fn words(written: &str) -> Option<String> {
        in_words(written.as_bytes(), LIMITS).map(|answer| String::from_utf8(answer.to_vec()).unwrap())
    }

    #[test]
    fn a_bare_answer_gets_a_body_and_keeps_its_other_headers() {
        let answer = words("HTTP/1.1 431 X\r\nconnection: close\r\ncontent-length: 0\r\ndate: today\r\n\r\n").unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(
            head,
            format!(
                "HTTP/1.1 431 X\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\ndate: today",
                body.len()
            )
        );
        assert!(body.contains(r#""code":"headers_too_large""#) && body.contains("100 bytes"), "{body}");
    }

    #[test]
    fn anything_else_is_left_alone() {
        for written in [
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\nHTTP",
            "data: x\n\n",
        ] {
            assert_eq!(words(written), None, "{written:?}");
        }
    }
}
