//! The first stage: method, path and size of the head, against the allow-list and the limits.

use std::sync::Arc;

use http::header::CONTENT_LENGTH;
use http::request::Parts;
use hyper::body::Incoming;

use super::finish::Record;
use crate::rescue::{Failure, MOST_HEADERS};
use crate::route::{NoRoute, Route};
use crate::upload::{Upload, body_limit};

/// A request that asks for something that is served.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// What it asks for.
    pub(crate) route: Route,
    /// Its head.
    pub(crate) head: Parts,
    /// Its body, of which nothing was read yet.
    pub(crate) body: Upload,
}

/// Accepts a request, or says why not.
pub(crate) fn accept(head: Parts, body: Incoming, record: &mut Record) -> Result<Accepted, Failure> {
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
