//! The canonical request: the one spelling of a request that client and router sign.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::HOST;
use http::request::Parts;

use super::query::{canonical_query, escape};
use super::refusal::Refusal;
use super::signature::payload_hash;

/// Tells the hash of the body where a client sends it apart.
const CONTENT_HASH: &str = "x-amz-content-sha256";
/// The parameter of a presigned query that is not signed, being the signature.
const SIGNATURE: &str = "X-Amz-Signature";

/// The payload's line: the hash of the body as it came, which must be the one that the client told, if it did.
pub(super) fn signed_payload(head: &Parts, body: &[u8]) -> Result<String, Refusal> {
    let hash = payload_hash(body);
    match head.headers.get(CONTENT_HASH).map(|told| told.as_bytes().trim_ascii()) {
        Some(told) if told.starts_with(b"STREAMING-") || told == b"UNSIGNED-PAYLOAD" => {
            Err(Refusal::Payload("The body must be signed as a whole: x-amz-content-sha256 must be its hash."))
        }
        Some(told) if !told.eq_ignore_ascii_case(hash.as_bytes()) => {
            Err(Refusal::Payload("The provided 'x-amz-content-sha256' header does not match what was computed."))
        }
        // A client that writes the digits large signs them so.
        Some(told) => Ok(String::from_utf8_lossy(told).into_owned()),
        None => Ok(hash),
    }
}

/// The canonical request of a head with these signed headers, in the client's order.
pub(super) fn canonical_request(head: &Parts, signed: &[String], payload: &str) -> Result<Vec<u8>, Refusal> {
    let mut text = Vec::new();
    for line in [
        head.method.as_str(),
        &canonical_path(head.uri.path()),
        &canonical_query(head.uri.query().unwrap_or(""), &[SIGNATURE]),
    ] {
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }
    for name in signed {
        let value = canonical_value(head, name).ok_or(Refusal::Mismatch)?;
        text.extend_from_slice(name.as_bytes());
        text.push(b':');
        text.extend_from_slice(&value);
        text.push(b'\n');
    }
    text.push(b'\n');
    text.extend_from_slice(signed.join(";").as_bytes());
    text.push(b'\n');
    text.extend_from_slice(payload.as_bytes());
    Ok(text)
}

/// Every header that is part of what is asked must be signed: the host, and AWS's own headers.
pub(super) fn check_signed(headers: &HeaderMap, signed: &[String]) -> Result<(), Refusal> {
    let is_signed = |name: &str| signed.iter().any(|listed| listed == name);
    if !is_signed("host") {
        return Err(Refusal::Unsigned("Host' or ':authority".to_owned()));
    }
    let unsigned = |name: &&str| name.starts_with("x-amz-") && !is_signed(name);
    match headers.keys().map(|name| name.as_str()).find(unsigned) {
        Some(name) => Err(Refusal::Unsigned(name.to_owned())),
        None => Ok(()),
    }
}

/// The path without empty and dot segments, each other one escaped once more than it came.
fn canonical_path(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let mut canonical: String = segments.iter().map(|segment| format!("/{}", escape(segment.as_bytes()))).collect();
    if canonical.is_empty() || path.ends_with('/') {
        canonical.push('/');
    }
    canonical
}

/// The values of a header, each without needless spaces, joined by commas; `None` when it is absent.
fn canonical_value(head: &Parts, name: &str) -> Option<Vec<u8>> {
    let values: Vec<Cow<'_, [u8]>> =
        head.headers.get_all(name).iter().map(|value| single_spaced(value.as_bytes())).collect();
    if values.is_empty() {
        // HTTP/2 names the host in the request's target.
        let authority = head.uri.authority().filter(|_| name == HOST.as_str())?;
        return Some(authority.as_str().as_bytes().to_vec());
    }
    Some(values.join(&b','))
}

/// Without spaces around it, and with one for every run of them.
fn single_spaced(value: &[u8]) -> Cow<'_, [u8]> {
    let value = value.trim_ascii();
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    if !value.windows(2).any(|pair| is_space(&pair[1]) && is_space(&pair[0])) && !value.contains(&b'\t') {
        return Cow::Borrowed(value);
    }
    let words: Vec<&[u8]> = value.split(|byte| is_space(byte)).filter(|word| !word.is_empty()).collect();
    Cow::Owned(words.join(&b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped_once_more_and_lose_what_means_nothing() {
        for (path, canonical) in [
            ("/", "/"),
            ("", "/"),
            ("/a/b", "/a/b"),
            ("/a//b/./c/../d/", "/a/b/d/"),
            ("/../..", "/"),
            ("/bad%21", "/bad%2521"),
            ("/a~b_c-d.e", "/a~b_c-d.e"),
            ("/a:b", "/a%3Ab"),
        ] {
            assert_eq!(canonical_path(path), canonical, "{path}");
        }
    }

    #[test]
    fn runs_of_spaces_are_one() {
        for (value, expected) in
            [("tenant  A", "tenant A"), ("  a ", "a"), ("a\t b", "a b"), ("a\tb", "a b"), ("a b", "a b")]
        {
            assert_eq!(single_spaced(value.as_bytes()), expected.as_bytes(), "{value:?}");
        }
    }
}
