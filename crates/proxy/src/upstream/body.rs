//! The body of an instance's response, and the connection that brings it.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use isotherm_fleet::Clock;

use super::connection::{BodyError, Connection};
use super::framing::Framing;
use super::pool::Home;

/// A body under way. At its end the connection returns to the pool; dropped earlier, the connection is closed, which
/// tells the instance to stop.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    /// `None` once the body has ended.
    connection: Option<Connection>,
    framing: Framing,
    /// Where the connection returns to; `None` when it can't be used again.
    home: Option<Home>,
    clock: Clock,
}

impl ResponseBody {
    /// The body behind a head.
    pub(crate) fn new(connection: Connection, framing: Framing, home: Option<Home>, clock: Clock) -> ResponseBody {
        let mut body = ResponseBody { connection: Some(connection), framing, home, clock };
        body.end_if_complete();
        body
    }

    /// The next piece; `None` at the end.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
        let next = ready!(connection.poll_body(context, &mut self.framing));
        match &next {
            Some(Ok(_)) => self.end_if_complete(),
            None => self.end(),
            // Nothing good can come from that connection any more.
            Some(Err(_)) => self.connection = None,
        }
        Poll::Ready(next)
    }

    /// Whether nothing more will come.
    pub(crate) fn has_ended(&self) -> bool {
        self.connection.is_none()
    }

    /// How many bytes will come, where that is known.
    pub(crate) fn remaining(&self) -> Option<u64> {
        if self.has_ended() { Some(0) } else { self.framing.remaining() }
    }

    fn end_if_complete(&mut self) {
        if self.framing.has_ended() {
            self.end();
        }
    }

    fn end(&mut self) {
        if let (Some(connection), Some(home)) = (self.connection.take(), self.home.take()) {
            home.give(connection, self.clock.now());
        }
    }
}
