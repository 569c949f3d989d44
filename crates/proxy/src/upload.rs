//! The body of a request: still coming, or here as a whole.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use isotherm_config::Limits;
use isotherm_core::Time;

use crate::connection::{Incoming, Unfinished};
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
                let body = read_whole(body, limit, record).await?;
                record.body_was_read = true;
                record.bytes_in = body.len() as u64;
                record.worker.leftover.note(body.len());
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

/// So much of a body has to come within each of its time-outs, or what is left of it: a byte now and then does not keep
/// a connection and the beginning of a body for ever.
const LEAST: usize = 1024;

/// The whole body, at most `limit` bytes, of which [`LEAST`] come within each `time_out`.
async fn read_whole(mut body: Incoming, limit: u64, record: &mut Record) -> Result<Bytes, Failure> {
    let time_out = record.rules.timeouts.client_body;
    let mut due = Due { at: None, missing: LEAST, waiting: 0, time_out };
    let expected = body.length();
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(piece) = next_piece(&mut body, &mut due, record).await? {
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

/// When the next of a body is due.
struct Due {
    /// `None` until it has to be waited for.
    at: Option<Time>,
    /// How many bytes have to come until then.
    missing: usize,
    /// How many of the next piece's have come already.
    waiting: usize,
    time_out: Duration,
}

impl Due {
    /// Notes that so much of the next piece has come.
    fn note_waiting(&mut self, length: usize) {
        let fresh = length.saturating_sub(std::mem::replace(&mut self.waiting, length));
        match self.missing.checked_sub(fresh) {
            Some(missing @ 1..) => self.missing = missing,
            _ => (self.at, self.missing) = (None, LEAST),
        }
    }
}

async fn next_piece(body: &mut Incoming, due: &mut Due, record: &mut Record) -> Result<Option<Bytes>, Failure> {
    let piece = poll_fn(|context| match body.poll_piece(context) {
        Poll::Pending => {
            due.note_waiting(body.waiting());
            let clock = record.worker.clock();
            let at = *due.at.get_or_insert_with(|| clock.now() + due.time_out);
            record.alarm.poll(context, at, clock).map(|()| Err(Failure::BodyTooSlow(due.time_out)))
        }
        Poll::Ready(None) => Poll::Ready(Ok(None)),
        Poll::Ready(Some(Ok(piece))) => Poll::Ready(Ok(Some(piece))),
        // Whether a body that does not come whole is the client's mistake, or its leaving.
        Poll::Ready(Some(Err(Unfinished::Broken))) => Poll::Ready(Err(Failure::BodyBroken)),
        Poll::Ready(Some(Err(Unfinished::Left))) => Poll::Ready(Err(Failure::ClientLeft)),
    });
    let piece = piece.await?;
    due.note_waiting(piece.as_ref().map_or(0, Bytes::len));
    due.waiting = 0;
    Ok(piece)
}
