//! The third stage: the body, whole and byte for byte as it came, and what routing needs of it.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use isotherm_fleet::Topology;

use super::accept::Accepted;
use super::authenticate::Authenticated;
use super::finish::Record;
use crate::prompt::{Form, Look, Read};
use crate::rescue::Failure;
use crate::route::Route;

/// A request whose body is here and understood.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// What it asks for.
    pub(crate) route: Route,
    /// Its head.
    pub(crate) head: Parts,
    /// Its body and what was read from it.
    pub(crate) read: Read,
    /// Whether the client's credentials pass to the instance.
    pub(crate) credentials_pass: bool,
}

/// Reads the body and describes it.
pub(crate) async fn decode(request: Authenticated, record: &mut Record) -> Result<Decoded, Failure> {
    let Authenticated { request: Accepted { route, head, body }, credentials_pass } = request;
    let rules = &record.rules;
    let body = read_whole(body, rules.limits.body, rules.timeouts.client_body).await?;
    record.body_was_read = true;
    record.bytes_in = body.len() as u64;
    let look = likely_look(&record.worker.fleet.topology());
    let read = Read::new(body, Form::of(&route, &head.headers), look, rules.hash_seed).map_err(Failure::Malformed)?;
    record.model.clone_from(&read.prompt.model);
    Ok(Decoded { route, head, read, credentials_pass })
}

/// What the first variant's strategy looks at: right for nearly every request, and corrected where it is not.
fn likely_look(topology: &Topology) -> Look {
    topology.variants().next().map_or(Look::Nowhere, |variant| Look::of(&variant.routing()))
}

/// The whole body, at most `limit` bytes, whose pieces come no further apart than `longest_gap`.
async fn read_whole(mut body: Incoming, limit: u64, longest_gap: Duration) -> Result<Bytes, Failure> {
    let expected = body.size_hint().exact();
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(piece) = next_piece(&mut body, longest_gap).await? {
        if (first.len() + all.len() + piece.len()) as u64 > limit {
            return Err(Failure::BodyTooLarge(limit));
        }
        // Most bodies come in one piece, which needs no copy.
        if first.is_empty() && all.is_empty() {
            first = piece;
            continue;
        }
        if all.is_empty() {
            all.reserve(expected.map_or(2 * (first.len() + piece.len()), |length| length.min(limit) as usize));
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&piece);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

async fn next_piece(body: &mut Incoming, longest_gap: Duration) -> Result<Option<Bytes>, Failure> {
    loop {
        let next = tokio::time::timeout(longest_gap, body.frame());
        match next.await {
            Err(_) => return Err(Failure::BodyTooSlow(longest_gap)),
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => return Err(broken(&error)),
            // Trailers of a request mean nothing here.
            Ok(Some(Ok(frame))) => {
                if let Ok(piece) = frame.into_data() {
                    return Ok(Some(piece));
                }
            }
        }
    }
}

/// Whether a body that does not come whole is the client's mistake, or its leaving.
fn broken(error: &hyper::Error) -> Failure {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    match source.map(io::Error::kind) {
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => Failure::BodyBroken,
        _ => Failure::ClientLeft,
    }
}
