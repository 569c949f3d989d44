//! The body of a response to a client: whole, or relayed as it comes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::connection::InFlight;
use crate::stage::relay::{BrokenOff, Relay};

/// A body, which keeps its connection busy until it is sent or dropped.
#[derive(Debug)]
pub(crate) struct Answer {
    body: Kind,
    in_flight: InFlight,
}

#[derive(Debug)]
enum Kind {
    /// What is left of a body that is there.
    Whole(Bytes),
    Relayed(Box<Relay>),
    /// It breaks off, once what came before has been written.
    BreakingOff,
    /// It has broken off.
    BrokenOff,
}

impl Answer {
    /// A body that is there.
    pub(crate) fn whole(body: Bytes, in_flight: InFlight) -> Answer {
        Answer { body: Kind::Whole(body), in_flight }
    }

    /// A body that comes from an instance.
    pub(crate) fn relayed(body: Box<Relay>, in_flight: InFlight) -> Answer {
        Answer { body: Kind::Relayed(body), in_flight }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        self.in_flight.wait_for_instance();
        let polled = match &mut self.body {
            Kind::Whole(body) if body.is_empty() => Poll::Ready(None),
            Kind::Whole(body) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(body))))),
            Kind::Relayed(relay) => match poll_relay(relay, context) {
                Poll::Ready(Some(Err(BrokenOff))) => {
                    // An error would discard what is not written yet; the writer takes its turn while this waits.
                    self.body = Kind::BreakingOff;
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                polled => polled,
            },
            Kind::BreakingOff => {
                self.body = Kind::BrokenOff;
                self.in_flight.break_off();
                Poll::Ready(Some(Err(BrokenOff)))
            }
            Kind::BrokenOff => Poll::Ready(None),
        };
        if let Poll::Ready(Some(Ok(_))) = &polled {
            self.in_flight.wait_for_client();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Kind::Whole(body) => body.is_empty(),
            Kind::Relayed(relay) => relay.is_end_stream(),
            Kind::BreakingOff | Kind::BrokenOff => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Kind::Whole(body) => SizeHint::with_exact(body.len() as u64),
            Kind::Relayed(relay) => relay.size_hint(),
            Kind::BreakingOff | Kind::BrokenOff => SizeHint::default(),
        }
    }
}

/// A fault in relaying one answer is that answer's alone.
fn poll_relay(relay: &mut Relay, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
    let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut *relay).poll_frame(context)));
    polled.unwrap_or_else(|_| {
        relay.fail();
        Poll::Ready(Some(Err(BrokenOff)))
    })
}
