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
    /// Relaying it failed in a way that must not happen.
    Failed,
}

impl Answer {
    /// A body that is there.
    pub(crate) fn whole(body: Bytes, in_flight: InFlight) -> Answer {
        Answer { body: Kind::Whole(body), in_flight }
    }

    /// Ends a body whose relaying failed in a way that must not happen.
    fn fail(&mut self) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        if let Kind::Relayed(relay) = &mut self.body {
            relay.fail();
        }
        self.body = Kind::Failed;
        Poll::Ready(Some(Err(BrokenOff)))
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
            Kind::Relayed(relay) => {
                let relay = Pin::new(&mut **relay);
                catch_unwind(AssertUnwindSafe(|| relay.poll_frame(context))).unwrap_or_else(|_| self.fail())
            }
            Kind::Failed => Poll::Ready(None),
        };
        match &polled {
            Poll::Ready(Some(Ok(_))) => self.in_flight.wait_for_client(),
            Poll::Ready(Some(Err(_))) => self.in_flight.break_off(),
            Poll::Ready(None) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Kind::Whole(body) => body.is_empty(),
            Kind::Relayed(relay) => relay.is_end_stream(),
            Kind::Failed => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Kind::Whole(body) => SizeHint::with_exact(body.len() as u64),
            Kind::Relayed(relay) => relay.size_hint(),
            Kind::Failed => SizeHint::default(),
        }
    }
}
