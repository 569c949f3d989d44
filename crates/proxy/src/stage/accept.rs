//! The first stage: method, path and size of the head, against the allow-list and the limits.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Method, Version};

use super::finish::Record;
use crate::connection::Incoming;
use crate::headers::DEADLINE;
use crate::rescue::{Failure, MOST_HEADERS};
use crate::route::{NoRoute, Route};
use crate::upload::{Upload, body_limit};

/// A request that asks for something that is served.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// What it asks for.
    pub(crate) route: Route,
    /// Its head.
    pub(crate) head: Box<Parts>,
    /// Its body, of which nothing was read yet.
    pub(crate) body: Upload,
}

/// Accepts a request, or says why not.
pub(crate) fn accept(head: Box<Parts>, body: Incoming, record: &mut Record) -> Result<Accepted, Failure> {
    let rules = Arc::clone(&record.rules);
    let target_length = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    if target_length as u64 > rules.limits.uri {
        return Err(Failure::UriTooLong(rules.limits.uri));
    }
    // As HTTP/2 counts them (RFC 9113, section 6.5.2), but with the four bytes that HTTP/1 spends on each line.
    let size: usize = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if size as u64 > rules.limits.headers || head.headers.len() > MOST_HEADERS {
        return Err(Failure::HeadersTooLarge(rules.limits.headers));
    }
    if !has_sound_target(&head) {
        return Err(Failure::BadTarget);
    }
    if !has_one_host(&head) {
        return Err(Failure::BadHost);
    }
    record.room_within = room_within(&head.headers)?;
    if !is_framed_plainly(&head.headers) {
        return Err(Failure::BodyBroken);
    }
    let route = match (Route::find(&head.method, head.uri.path(), &rules.allow_paths), &record.worker.aws) {
        (Ok(route), _) => route,
        (Err(NoRoute::Method(allowed)), _) => return Err(Failure::MethodNotAllowed(allowed)),
        (Err(NoRoute::Path), None) => return Err(Failure::NoSuchPath),
        (Err(NoRoute::Path), Some(_)) => Route::find_aws(&head).ok_or(Failure::NoSuchPath)?,
    };
    if let Route::Aws(protocol) = route {
        record.aws = Some(protocol);
    }
    let declared = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let limit = body_limit(&route, &rules.limits);
    if declared.is_some_and(|length| length > limit) {
        return Err(Failure::BodyTooLarge(limit));
    }
    record.route = Some(route.label());
    Ok(Accepted { route, head, body: Upload::Coming(body) })
}

/// By when after its arrival the client wants the request to have its place, or an answer that there is none.
fn room_within(headers: &HeaderMap) -> Result<Option<Duration>, Failure> {
    let Some(value) = headers.get(DEADLINE) else { return Ok(None) };
    let milliseconds = value.to_str().ok().and_then(|text| text.parse::<u32>().ok());
    milliseconds.map(|count| Some(Duration::from_millis(count.into()))).ok_or(Failure::BadDeadline)
}

/// Whether the target is a path, or all that is served, which OPTIONS alone may ask about (RFC 9112, section 3.2), and
/// has no bytes that no URI has (RFC 3986, section 2): whoever decodes those may find another path in them.
fn has_sound_target(head: &Parts) -> bool {
    let path = head.uri.path();
    let is_of_its_method = path.starts_with('/') || (path == "*" && head.method == Method::OPTIONS);
    is_of_its_method && head.uri.path_and_query().is_some_and(|target| target.as_str().is_ascii())
}

/// Whether a request of HTTP/1.1 names one host, and one of HTTP/1.0 at most one (RFC 9112, section 3.2). HTTP/2 has
/// rules of its own.
fn has_one_host(head: &Parts) -> bool {
    let mut hosts = head.headers.get_all(HOST).iter();
    match (head.version, hosts.next(), hosts.next()) {
        (Version::HTTP_2, ..) | (Version::HTTP_10, None, _) => true,
        (_, Some(host), None) => is_host(host.as_bytes()),
        _ => false,
    }
}

/// Whether this is a name or an address, and perhaps a port.
fn is_host(bytes: &[u8]) -> bool {
    let Ok(authority) = Authority::try_from(bytes) else { return false };
    let (all, host) = (authority.as_str(), authority.host());
    let port = all.strip_prefix(host).map(|rest| rest.strip_prefix(':').unwrap_or(rest));
    !host.is_empty() && port.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether the body comes as it is or in chunks, and in no other coding: those would have to be passed on, or decoded.
fn is_framed_plainly(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_paths_of_ascii_or_everything() {
        let is_sound = |method: &str, target: &str| {
            let head = http::Request::builder().method(method).uri(target).body(()).unwrap();
            has_sound_target(&head.into_parts().0)
        };
        for (method, target) in [("GET", "/"), ("POST", "/a?b=%c3"), ("GET", "http://h/a"), ("OPTIONS", "*")] {
            assert!(is_sound(method, target), "{method} {target}");
        }
        for (method, target) in
            [("GET", "*"), ("GET", "h:80"), ("CONNECT", "h:80"), ("GET", "/\u{e9}"), ("GET", "/?\u{e9}")]
        {
            assert!(!is_sound(method, target), "{method} {target}");
        }
    }

    #[test]
    fn a_host_is_one_name_or_address_and_perhaps_a_port() {
        for host in ["h", "h:80", "h:", "127.0.0.1:8080", "[::1]", "[::1]:80"] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in ["", ":80", "h:x", "u@h", "h/p", "h, i", "h i", "[::1", "http://h"] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn each_version_names_as_many_hosts_as_it_has_to() {
        let is_right = |version, hosts: &[&str]| {
            let head =
                hosts.iter().fold(http::Request::builder().version(version), |head, host| head.header(HOST, *host));
            has_one_host(&head.body(()).unwrap().into_parts().0)
        };
        for (version, none) in [(Version::HTTP_10, true), (Version::HTTP_11, false)] {
            assert_eq!(is_right(version, &[]), none);
            assert!(is_right(version, &["h"]) && !is_right(version, &["h", "h"]) && !is_right(version, &[""]));
        }
    }
}
