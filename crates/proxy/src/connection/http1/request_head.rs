//! The head of a request, and how the body behind it is framed (RFC 9112). What two parties could read differently is
//! refused.

use std::mem::MaybeUninit;
use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Method, Request, Uri, Version};
use httparse::{ParserConfig, Status};

use super::socket::READ_SIZE;
use crate::rescue::MOST_HEADERS;
use crate::upstream::Framing;

/// The longest target that can be told at all, in bytes.
const LONGEST_TARGET: usize = 65_534;
/// A longer method is none that anybody knows.
const LONGEST_METHOD: usize = 32;

/// The head of a request.
#[derive(Debug)]
pub(super) struct RequestHead {
    /// Method, target, version and headers. A length beside a transfer coding is left out, as RFC 9112, section 6.3, has
    /// it.
    pub(super) parts: Box<Parts>,
    /// How many bytes it is long.
    pub(super) length: usize,
    /// Where the body ends.
    pub(super) framing: Framing,
    /// Whether the client would send a further request on the connection. Not after a body in chunks: had it told a
    /// length too, then whoever stands in front could take for its body what looks like a further request from here.
    pub(super) keeps_alive: bool,
    /// Whether the client waits to be told to go on before it sends the body.
    pub(super) waits_to_continue: bool,
}

/// Why bytes are no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoRequest {
    /// They are not HTTP/1, or could be read in two ways.
    Malformed,
    /// The target is too long.
    TargetTooLong,
    /// The head is too large, or has too many lines.
    TooLarge,
}

impl RequestHead {
    /// Takes a head out of what was read; `None` while it is not whole.
    pub(super) fn take(read: &mut BytesMut) -> Result<Option<RequestHead>, NoRequest> {
        let mut lines = [const { MaybeUninit::uninit() }; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut []);
        let outcome = ParserConfig::default().parse_request_with_uninit_headers(&mut parsed, read, &mut lines);
        let length = match outcome {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(NoRequest::TooLarge),
            Err(_) => return Err(NoRequest::Malformed),
        };
        let (Some(method), Some(target)) = (parsed.method, parsed.path) else { return Err(NoRequest::Malformed) };
        if target.len() > LONGEST_TARGET {
            return Err(NoRequest::TargetTooLong);
        }
        // A fragment is no part of a target (RFC 9112, section 3.2), and would be lost without a word.
        if method.len() > LONGEST_METHOD || target.contains('#') {
            return Err(NoRequest::Malformed);
        }
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| NoRequest::Malformed)?;
        let version = if parsed.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
        // Where each part stands, since what is parsed borrows from what is about to be taken.
        let start = read.as_ptr().addr();
        let place = |text: &[u8]| text.as_ptr().addr() - start..text.as_ptr().addr() - start + text.len();
        let target = place(target.as_bytes());
        let places: Vec<Place> =
            parsed.headers.iter().map(|line| (place(line.name.as_bytes()), place(line.value))).collect();
        let bytes = take_bytes(read, length);
        let uri = Uri::from_maybe_shared(bytes.slice(target)).map_err(|_| NoRequest::Malformed)?;
        let mut parts = Request::new(()).into_parts().0;
        (parts.method, parts.uri, parts.version) = (method, uri, version);
        parts.headers = headers(&bytes, &places)?;
        RequestHead::of(parts, length).map(Some)
    }

    fn of(mut parts: Parts, bytes: usize) -> Result<RequestHead, NoRequest> {
        let is_11 = parts.version == Version::HTTP_11;
        let headers = &mut parts.headers;
        let is_chunked = match headers.get_all(TRANSFER_ENCODING).iter().next_back() {
            None => false,
            Some(coding) if is_11 && ends_chunked(coding) => true,
            Some(_) => return Err(NoRequest::Malformed),
        };
        let framing = match length(headers)? {
            _ if is_chunked => Framing::STRICTLY_CHUNKED,
            Some(length) => Framing::Length(length),
            None => Framing::EMPTY,
        };
        if is_chunked {
            headers.remove(CONTENT_LENGTH);
        }
        let keeps_alive = !is_chunked && keeps_alive(headers, is_11);
        let expected = headers.get_all(EXPECT).iter().next_back();
        let waits_to_continue =
            is_11 && expected.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        Ok(RequestHead { parts: Box::new(parts), length: bytes, framing, keeps_alive, waits_to_continue })
    }
}

/// The head's bytes, which are kept as long as anything is known of the request: those of a long one are copied, since
/// they would keep its body too.
fn take_bytes(read: &mut BytesMut, length: usize) -> Bytes {
    if read.capacity() <= READ_SIZE {
        return read.split_to(length).freeze();
    }
    let bytes = Bytes::copy_from_slice(&read[..length]);
    read.advance(length);
    bytes
}

/// Whether a head that was not whole when `before` bytes of it had come may be so now: it is parsed again only then, so
/// that one which comes byte by byte costs no more than any other.
pub(super) fn may_be_whole(read: &[u8], before: usize) -> bool {
    let fresh = &read[before.saturating_sub(3)..];
    memchr::memchr_iter(b'\n', fresh).any(|at| matches!(fresh[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]))
}

/// Where the name and the value of a header stand.
type Place = (Range<usize>, Range<usize>);

fn headers(bytes: &Bytes, places: &[Place]) -> Result<HeaderMap, NoRequest> {
    let mut headers = HeaderMap::with_capacity(places.len());
    for (name, value) in places {
        let name = HeaderName::from_bytes(&bytes[name.clone()]).map_err(|_| NoRequest::Malformed)?;
        let value = HeaderValue::from_maybe_shared(bytes.slice(value.clone())).map_err(|_| NoRequest::Malformed)?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Whether `chunked` is the last of the codings.
fn ends_chunked(codings: &HeaderValue) -> bool {
    let last = codings.as_bytes().rsplit(|&byte| byte == b',').next().unwrap_or_default();
    last.trim_ascii().eq_ignore_ascii_case(b"chunked")
}

/// The length that the head tells: once, or several times the same, of which one is kept.
fn length(headers: &mut HeaderMap) -> Result<Option<u64>, NoRequest> {
    let mut values = headers.get_all(CONTENT_LENGTH).iter();
    let Some(first) = values.next() else { return Ok(None) };
    let told = number(first).ok_or(NoRequest::Malformed)?;
    let mut is_repeated = false;
    for other in values {
        if number(other) != Some(told) {
            return Err(NoRequest::Malformed);
        }
        is_repeated = true;
    }
    if is_repeated {
        let first = first.clone();
        headers.insert(CONTENT_LENGTH, first);
    }
    Ok(Some(told))
}

fn number(value: &HeaderValue) -> Option<u64> {
    let digits = value.to_str().ok()?;
    // `u64::from_str` takes a sign, too.
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

fn keeps_alive(headers: &HeaderMap, is_11: bool) -> bool {
    if !headers.contains_key(CONNECTION) {
        return is_11;
    }
    let says = |word: &str| {
        let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|option| option.trim().eq_ignore_ascii_case(word))
    };
    !says("close") && (is_11 || says("keep-alive"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(text: &str) -> Result<Option<RequestHead>, NoRequest> {
        RequestHead::take(&mut BytesMut::from(text))
    }

    fn of(lines: &str) -> Result<RequestHead, NoRequest> {
        take(&format!("POST /v1/x HTTP/1.1\r\n{lines}\r\n")).map(|head| head.unwrap())
    }

    #[test]
    fn the_head_is_taken_and_the_body_left() {
        let mut read =
            BytesMut::from(&b"POST /a?b HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a: \xe9\r\ncontent-length: 2\r\n\r\nhi"[..]);
        let head = RequestHead::take(&mut read).unwrap().unwrap();
        assert_eq!((&head.parts.method, head.parts.uri.to_string().as_str()), (&Method::POST, "/a?b"));
        assert_eq!((head.framing, head.keeps_alive, head.waits_to_continue), (Framing::Length(2), true, false));
        assert_eq!(head.parts.headers.get_all("x-a").iter().count(), 2);
        assert_eq!(read, "hi");
    }

    #[test]
    fn nothing_is_taken_before_the_head_is_whole() {
        let text = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        let mut read = BytesMut::new();
        for (index, byte) in text.bytes().enumerate() {
            let before = read.len();
            read.extend_from_slice(&[byte]);
            let is_last = index + 1 == text.len();
            assert_eq!(may_be_whole(&read, before), is_last, "after {index} bytes");
            assert_eq!(RequestHead::take(&mut read).unwrap().is_some(), is_last, "after {index} bytes");
        }
        assert!(may_be_whole(b"a\n\n", 2) && may_be_whole(b"a\n\r\n", 3) && !may_be_whole(b"a\r\n\r", 3));
    }

    #[test]
    fn the_framing_is_what_the_standard_says() {
        let framing = |lines: &str| of(lines).map(|head| head.framing);
        assert_eq!(framing(""), Ok(Framing::EMPTY));
        assert_eq!(framing("content-length: 5\r\ncontent-length: 5\r\n"), Ok(Framing::Length(5)));
        let both = of("content-length: 5\r\ntransfer-encoding: Chunked\r\n").unwrap();
        assert_eq!(both.framing, Framing::STRICTLY_CHUNKED);
        assert!(!both.keeps_alive && !both.parts.headers.contains_key(CONTENT_LENGTH));
        for lines in [
            "content-length: 5\r\ncontent-length: 6\r\n",
            "content-length: +5\r\n",
            "content-length: 5, 5\r\n",
            "content-length:\r\n",
            "content-length: 99999999999999999999\r\n",
            "transfer-encoding: gzip\r\n",
            "transfer-encoding: chunked, gzip\r\n",
            "transfer-encoding: chunked\r\ntransfer-encoding: gzip\r\n",
            "content-length: x\r\ntransfer-encoding: chunked\r\n",
            "a b: c\r\n",
        ] {
            assert!(of(lines).is_err(), "{lines:?}");
        }
        assert!(take("POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(take("hello\r\n\r\n").is_err());
    }

    #[test]
    fn connections_are_kept_as_each_version_has_it() {
        let keeps = |text: &str| take(text).unwrap().unwrap().keeps_alive;
        assert!(keeps("GET / HTTP/1.1\r\n\r\n") && !keeps("GET / HTTP/1.0\r\n\r\n"));
        assert!(keeps("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"));
        assert!(!keeps("GET / HTTP/1.1\r\nconnection: x, Close\r\n\r\n"));
        assert!(!keeps("GET / HTTP/1.1\r\nconnection: close\r\nconnection: keep-alive\r\n\r\n"));
    }

    #[test]
    fn a_head_is_bounded_in_lines_and_target() {
        let lines: String = (0..MOST_HEADERS + 1).map(|n| format!("x-{n}: y\r\n")).collect();
        assert_eq!(of(&lines).unwrap_err(), NoRequest::TooLarge);
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(LONGEST_TARGET));
        assert_eq!(take(&long).unwrap_err(), NoRequest::TargetTooLong);
        assert_eq!(take("GET /x#y HTTP/1.1\r\n\r\n").unwrap_err(), NoRequest::Malformed);
        assert_eq!(
            take(&format!("{} / HTTP/1.1\r\n\r\n", "X".repeat(LONGEST_METHOD + 1))).unwrap_err(),
            NoRequest::Malformed
        );
    }

    #[test]
    fn a_client_may_wait_to_be_told_to_go_on() {
        assert!(of("expect: 100-Continue\r\n").unwrap().waits_to_continue);
        assert!(!of("expect: something\r\n").unwrap().waits_to_continue);
    }
}
