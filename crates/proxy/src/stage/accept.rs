//! The first stage: method, path and size of the head, against the allow-list and the limits.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Version};

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
    if head.version == Version::HTTP_11 && !has_one_host(&head.headers) {
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

/// Whether a request of HTTP/1.1 names one host (RFC 9112, section 3.2).
fn has_one_host(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let is_host = |bytes: &[u8]| Authority::try_from(bytes).is_ok_and(|host| !host.as_str().contains('@'));
    host.is_empty() || is_host(host.as_bytes())
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
