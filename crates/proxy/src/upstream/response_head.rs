//! The head of an instance's response: status, headers, and how the body behind it is framed.

use std::mem::MaybeUninit;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{Method, StatusCode};
use httparse::{ParserConfig, Status};

use super::framing::Framing;

/// The longest head of a response, in bytes.
const LONGEST_HEAD: usize = 64 * 1024;
/// How many headers the router adds, for which room is made at once: the request's id, and the decision.
const OWN_HEADERS: usize = 4;
/// The most header lines of a response.
const MOST_HEADERS: usize = 128;

/// The head of a final response.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    /// Its status; never 1xx.
    pub(crate) status: StatusCode,
    /// Its headers as they came.
    pub(crate) headers: HeaderMap,
    /// Where its body ends.
    pub(crate) framing: Framing,
    /// Whether the connection may carry another request afterwards.
    pub(crate) keeps_alive: bool,
}

/// Bytes that are no response to what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the instance's answer is no HTTP/1 response: {0}")]
pub(crate) struct BadResponse(pub(crate) &'static str);

impl ResponseHead {
    /// Takes the head of a final response to a request of this method out of what was read; `None` while it is not
    /// whole. Interim responses (1xx) before it are dropped.
    pub(crate) fn take(read: &mut BytesMut, method: &Method) -> Result<Option<ResponseHead>, BadResponse> {
        while let Some(head) = take_any(read, method)? {
            if head.status == StatusCode::SWITCHING_PROTOCOLS {
                return Err(BadResponse("it switches protocols, which was not asked for"));
            }
            if !head.status.is_informational() {
                return Ok(Some(head));
            }
        }
        Ok(None)
    }
}

fn take_any(read: &mut BytesMut, method: &Method) -> Result<Option<ResponseHead>, BadResponse> {
    let mut lines = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let outcome = ParserConfig::default().parse_response_with_uninit_headers(&mut parsed, read, &mut lines);
    let length = match outcome {
        Ok(Status::Complete(length)) if length <= LONGEST_HEAD => length,
        Ok(Status::Partial) if read.len() <= LONGEST_HEAD => return Ok(None),
        Ok(_) => return Err(BadResponse("its head is too long")),
        Err(httparse::Error::TooManyHeaders) => return Err(BadResponse("it has too many headers")),
        Err(_) => return Err(BadResponse("its head is malformed")),
    };
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(BadResponse("its status is no status"))?;
    let http_11 = parsed.version == Some(1);
    // Where each header stands, since the parsed ones borrow what is about to be taken.
    let start = read.as_ptr().addr();
    let place = |line: &httparse::Header<'_>| {
        let (name, value) = (line.name.as_ptr().addr() - start, line.value.as_ptr().addr() - start);
        (name..name + line.name.len(), value..value + line.value.len())
    };
    let places: Vec<Place> = parsed.headers.iter().map(place).collect();
    let headers = headers(&read.split_to(length).freeze(), &places)?;
    let framing = framing(&headers, status, method, http_11)?;
    let keeps_alive = keeps_alive(&headers, http_11) && !framing.ends_with_connection();
    Ok(Some(ResponseHead { status, headers, framing, keeps_alive }))
}

/// Where the name and the value of a header stand.
type Place = (Range<usize>, Range<usize>);

fn headers(bytes: &Bytes, places: &[Place]) -> Result<HeaderMap, BadResponse> {
    let mut headers = HeaderMap::with_capacity(places.len() + OWN_HEADERS);
    for (name, value) in places {
        let name =
            HeaderName::from_bytes(&bytes[name.clone()]).map_err(|_| BadResponse("a header's name is malformed"))?;
        let value = HeaderValue::from_maybe_shared(bytes.slice(value.clone()))
            .map_err(|_| BadResponse("a header's value is malformed"))?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// RFC 9112, section 6.3, for a client: what can be read in two ways is refused.
fn framing(headers: &HeaderMap, status: StatusCode, method: &Method, http_11: bool) -> Result<Framing, BadResponse> {
    if *method == Method::HEAD || matches!(status.as_u16(), 100..=199 | 204 | 304) {
        return Ok(Framing::EMPTY);
    }
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next() {
        let chunked = coding.as_bytes().eq_ignore_ascii_case(b"chunked") && codings.next().is_none();
        return match (chunked, http_11, headers.contains_key(CONTENT_LENGTH)) {
            (true, true, false) => Ok(Framing::CHUNKED),
            (true, true, true) => Err(BadResponse("it has both a length and a transfer coding")),
            _ => Err(BadResponse("its transfer coding is not chunked of HTTP/1.1")),
        };
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter().map(content_length);
    match lengths.next() {
        None => Ok(Framing::UntilClose),
        Some(Some(length)) if lengths.all(|other| other == Some(length)) => Ok(Framing::Length(length)),
        Some(_) => Err(BadResponse("its length is not one number")),
    }
}

fn content_length(value: &HeaderValue) -> Option<u64> {
    let digits = value.to_str().ok()?;
    // `u64::from_str` takes a sign, too.
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn keeps_alive(headers: &HeaderMap, http_11: bool) -> bool {
    let says = |word: &str| {
        let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|option| option.trim().eq_ignore_ascii_case(word))
    };
    if http_11 { !says("close") } else { says("keep-alive") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(text: &str) -> Result<Option<ResponseHead>, BadResponse> {
        ResponseHead::take(&mut BytesMut::from(text), &Method::POST)
    }

    fn framing_of(lines: &str) -> Result<Framing, BadResponse> {
        take(&format!("HTTP/1.1 200 OK\r\n{lines}\r\n")).map(|head| head.unwrap().framing)
    }

    #[test]
    fn the_head_is_taken_and_the_body_left() {
        let mut read = BytesMut::from(&b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\nx-a: \xe9\r\n\r\nhi"[..]);
        let head = ResponseHead::take(&mut read, &Method::POST).unwrap().unwrap();
        assert_eq!((head.status, head.framing, head.keeps_alive), (StatusCode::OK, Framing::Length(2), true));
        assert_eq!(head.headers.get_all("x-a").iter().count(), 2);
        assert_eq!(read, "hi");
    }

    #[test]
    fn nothing_is_taken_before_the_head_is_whole() {
        let text =
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 204 No\r\na: b\r\n\r\n";
        let mut read = BytesMut::new();
        for (index, byte) in text.bytes().enumerate() {
            read.extend_from_slice(&[byte]);
            let head = ResponseHead::take(&mut read, &Method::POST).unwrap();
            assert_eq!(head.is_some(), index + 1 == text.len(), "after {index} bytes");
        }
    }

    #[test]
    fn the_framing_is_what_the_standard_says() {
        assert_eq!(framing_of("content-length: 5\r\n"), Ok(Framing::Length(5)));
        assert_eq!(framing_of("content-length: 5\r\ncontent-length: 5\r\n"), Ok(Framing::Length(5)));
        assert_eq!(framing_of("transfer-encoding: Chunked\r\n"), Ok(Framing::CHUNKED));
        assert_eq!(framing_of(""), Ok(Framing::UntilClose));
        let head =
            ResponseHead::take(&mut BytesMut::from("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"), &Method::HEAD);
        assert_eq!(head.unwrap().unwrap().framing, Framing::EMPTY);
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for lines in [
            "content-length: 5\r\ncontent-length: 6\r\n",
            "content-length: 5, 5\r\n",
            "content-length: +5\r\n",
            "content-length: \r\n",
            "content-length: 5\r\ntransfer-encoding: chunked\r\n",
            "transfer-encoding: gzip, chunked\r\n",
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
            "transfer-encoding: identity\r\n",
        ] {
            assert!(framing_of(lines).is_err(), "{lines:?}");
        }
        for text in [
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
            "HTTP/2 200 OK\r\n\r\n",
            "hello\r\n\r\n",
            "HTTP/1.1 999999 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\na b: c\r\n\r\n",
        ] {
            assert!(take(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_head_is_bounded_in_lines_and_bytes() {
        let many: String = (0..MOST_HEADERS + 1).map(|n| format!("x-{n}: y\r\n")).collect();
        assert!(framing_of(&many).is_err());
        let long = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(LONGEST_HEAD));
        assert!(take(&long).is_err());
    }

    #[test]
    fn a_connection_is_kept_only_where_both_sides_can_tell_the_end() {
        let keeps = |text: &str| take(text).unwrap().unwrap().keeps_alive;
        assert!(keeps("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
        assert!(!keeps("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: x, Close\r\n\r\n"));
        assert!(!keeps("HTTP/1.1 200 OK\r\n\r\n"));
        assert!(!keeps("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"));
        assert!(keeps("HTTP/1.0 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n"));
    }
}
