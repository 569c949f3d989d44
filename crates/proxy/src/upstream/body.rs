//! The body of an instance's response, and the connection that brings it.

use std::task::{Context, Poll};

use bytes::Bytes;
use isotherm_core::Time;
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
    /// When the head came, until something behind it has to be waited for.
    heard: Option<Time>,
    clock: Clock,
}

impl ResponseBody {
    /// The body behind a head that has come now.
    pub(crate) fn new(
        connection: Connection,
        framing: Framing,
        home: Option<Home>,
        now: Time,
        clock: Clock,
    ) -> ResponseBody {
        let mut body = ResponseBody { connection: Some(connection), framing, home, heard: Some(now), clock };
        body.end_if_complete();
        body
    }

    /// The next piece; `None` at the end.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
        let Poll::Ready(next) = connection.poll_body(context, &mut self.framing) else {
            self.heard = None;
            return Poll::Pending;
        };
        match &next {
            Some(Ok(_)) => self.end_if_complete(),
            None => self.end(),
            // Nothing good can come from that connection any more.
            Some(Err(_)) => self.connection = None,
        }
        Poll::Ready(next)
    }

    /// When the head came, if all that was taken so far came with it; otherwise the time now.
    pub(crate) fn heard(&self) -> Time {
        self.heard.unwrap_or_else(|| self.clock.now())
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
            home.give(connection, self.heard());
        }
    }
}
