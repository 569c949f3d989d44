//! The body of a request: still coming, or here as a whole.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use isotherm_config::Limits;

use crate::rescue::Failure;
use crate::route::Route;
use crate::stage::finish::Record;

/// A request's body on its way through the stages. A signature covers it, so some are read earlier than others.
#[derive(Debug)]
pub(crate) enum Upload {
    /// Nothing was read of it yet.
    Coming(Incoming),
    /// It is here.
    Here(Bytes),
}

impl Upload {
    /// The body, byte for byte as it came and at most `limit` bytes.
    pub(crate) async fn whole(self, limit: u64, record: &mut Record) -> Result<Bytes, Failure> {
        match self {
            Upload::Here(body) => Ok(body),
            Upload::Coming(body) => {
                let body = read_whole(body, limit, record.rules.timeouts.client_body).await?;
                record.body_was_read = true;
                record.bytes_in = body.len() as u64;
                Ok(body)
            }
        }
    }
}

/// The largest body of a request to AWS's other services: as much as SageMaker's own paths take.
const LARGEST_OF_AWS: u64 = 6 << 20;

/// How large a body may be, by what it asks for.
pub(crate) fn body_limit(route: &Route, limits: &Limits) -> u64 {
    match route {
        Route::Aws(_) => LARGEST_OF_AWS,
        Route::Runtime { .. } => limits.invocation_body,
        _ => limits.body,
    }
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
