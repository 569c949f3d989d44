//! The body of a request as it comes, over either protocol.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::Body;

use super::http1::RequestBody;

/// A body of which nothing, or a beginning, was read.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// On a connection of HTTP/1.
    Http1(RequestBody),
    /// On a stream of HTTP/2.
    Http2(hyper::body::Incoming),
}

/// Why a body does not come whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// Its framing is broken.
    Broken,
    /// Its client left.
    Left,
}

impl Incoming {
    /// How many bytes will come, where the head has told.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Incoming::Http1(body) => body.length(),
            Incoming::Http2(body) => body.size_hint().exact(),
        }
    }

    /// How many bytes have come that wait for the rest, to be one piece with it.
    pub(crate) fn waiting(&self) -> usize {
        match self {
            Incoming::Http1(body) => body.waiting(),
            Incoming::Http2(_) => 0,
        }
    }

    /// The next piece; `None` at the end.
    pub(crate) fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Unfinished>>> {
        let body = match self {
            Incoming::Http1(body) => return body.poll_piece(context),
            Incoming::Http2(body) => body,
        };
        loop {
            match ready!(Pin::new(&mut *body).poll_frame(context)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(unfinished(&error)))),
                // Trailers of a request mean nothing here.
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        return Poll::Ready(Some(Ok(piece)));
                    }
                }
            }
        }
    }
}

fn unfinished(error: &hyper::Error) -> Unfinished {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    match source.map(io::Error::kind) {
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => Unfinished::Broken,
        _ => Unfinished::Left,
    }
}
