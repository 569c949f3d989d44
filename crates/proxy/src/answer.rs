//! The body of a response to a client: whole, or relayed as it comes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::connection::InFlight;
use crate::stage::relay::{BrokenOff, Relay};

/// The body of a response.
#[derive(Debug)]
pub(crate) enum Body {
    /// What is left of a body that is there.
    Whole(Bytes),
    /// It comes from an instance.
    Relayed(Box<Relay>),
}

impl Body {
    /// The next piece; `None` at the end.
    pub(crate) fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        match self {
            Body::Whole(body) if body.is_empty() => Poll::Ready(None),
            Body::Whole(body) => Poll::Ready(Some(Ok(std::mem::take(body)))),
            Body::Relayed(relay) => poll_relay(relay, context),
        }
    }

    /// How long it is, where the head tells.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Body::Whole(body) => Some(body.len() as u64),
            Body::Relayed(relay) => relay.length(),
        }
    }
}

/// A body on a stream of HTTP/2, which keeps its connection busy until it is sent or dropped.
#[derive(Debug)]
pub(crate) struct Answer {
    body: Body,
    /// How far it is with breaking off.
    breaking: Breaking,
    in_flight: InFlight,
}

#[derive(Debug)]
enum Breaking {
    /// It does not.
    Not,
    /// It breaks off, once what came before has been written.
    Soon,
    /// It has broken off.
    Done,
}

impl Answer {
    /// A body that is sent.
    pub(crate) fn new(body: Body, in_flight: InFlight) -> Answer {
        Answer { body, breaking: Breaking::Not, in_flight }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        self.in_flight.wait_for_instance();
        let polled = match self.breaking {
            Breaking::Not => match self.body.poll_piece(context) {
                Poll::Ready(Some(Err(BrokenOff))) => {
                    // An error would discard what is not written yet; the writer takes its turn while this waits.
                    self.breaking = Breaking::Soon;
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                polled => polled.map_ok(Frame::data),
            },
            Breaking::Soon => {
                self.breaking = Breaking::Done;
                Poll::Ready(Some(Err(BrokenOff)))
            }
            Breaking::Done => Poll::Ready(None),
        };
        if let Poll::Ready(Some(Ok(_))) = &polled {
            self.in_flight.wait_for_client();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match (&self.breaking, &self.body) {
            (Breaking::Not, Body::Whole(body)) => body.is_empty(),
            (Breaking::Not, Body::Relayed(relay)) => http_body::Body::is_end_stream(&**relay),
            (Breaking::Soon | Breaking::Done, _) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self.breaking {
            Breaking::Not => self.body.length().map_or_else(SizeHint::default, SizeHint::with_exact),
            Breaking::Soon | Breaking::Done => SizeHint::default(),
        }
    }
}

/// A fault in relaying one answer is that answer's alone.
fn poll_relay(relay: &mut Relay, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
    let polled = catch_unwind(AssertUnwindSafe(|| relay.poll_piece(context)));
    polled.unwrap_or_else(|_| {
        relay.fail();
        Poll::Ready(Some(Err(BrokenOff)))
    })
}
