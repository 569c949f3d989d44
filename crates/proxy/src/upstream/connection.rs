//! One HTTP/1.1 connection to an instance, driven by whoever waits for its response.
//!
//! There is no task behind it: the request that uses it reads and writes the socket itself, so no byte is handed from
//! task to task, and dropping the request closes the socket at once.
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::Method;
use isotherm_tls::Stream;
use tokio::io::{AsyncReadExt, AsyncWrite};

use super::framing::{BrokenFraming, Framing, Piece};
use super::response_head::{BadResponse, ResponseHead};

/// Room that is made for reading: enough for a burst of events, little enough to keep for many streams.
const READ_SIZE: usize = 16 * 1024;
/// Less room than this is worth making more.
const LEAST_ROOM: usize = 4 * 1024;

/// A connection between two requests or within one.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    /// What was read and not yet taken.
    read: BytesMut,
    /// Whether it has carried a request before the present one.
    reused: bool,
}

/// Why there is no response head.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The connection broke before a single byte of the response.
    #[error("the connection broke before the response: {0}")]
    Silent(io::ErrorKind),
    /// The connection broke within the response's head.
    #[error("the connection broke within the response's head: {0}")]
    Broken(io::ErrorKind),
    /// What came is no response.
    #[error(transparent)]
    Bad(#[from] BadResponse),
}

/// Why a body ends before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// The connection broke.
    #[error("the connection broke within the response's body: {0}")]
    Broken(io::ErrorKind),
    /// The framing is not what the head promised.
    #[error(transparent)]
    Framing(#[from] BrokenFraming),
}

impl SendError {
    /// The same, told by the write that failed first.
    fn caused_by(self, write: Option<io::ErrorKind>) -> SendError {
        match (self, write) {
            (SendError::Silent(_), Some(kind)) => SendError::Silent(kind),
            (error, _) => error,
        }
    }
}

impl Connection {
    /// A connection that has carried nothing yet.
    pub(crate) fn new(stream: Stream) -> Connection {
        Connection { stream, read: BytesMut::new(), reused: false }
    }

    /// Whether it has carried a request before: then the instance may close it just as the next one is sent.
    pub(crate) fn is_reused(&self) -> bool {
        self.reused
    }

    /// Marks it as one that has carried a request.
    pub(crate) fn mark_reused(&mut self) {
        self.reused = true;
    }

    /// Whether nothing has happened on it while it was idle: no end, no error, no bytes that nobody asked for.
    pub(crate) fn is_idle(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.read.is_empty() && self.poll_read(&mut context).is_pending()
    }

    /// Sends a request and waits for the head of its response.
    ///
    /// An instance may answer before it has read the request: an error then ends the sending, and with it the use of
    /// the connection; anything else waits until the request was sent whole.
    pub(crate) async fn send(&mut self, head: &[u8], body: &Bytes, method: &Method) -> Result<ResponseHead, SendError> {
        let mut unsent = Buf::chain(head, &**body);
        let mut write_error = None;
        let mut early = None;
        std::future::poll_fn(|context| {
            while unsent.has_remaining() && write_error.is_none() {
                match self.poll_write(context, &mut unsent) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => write_error = Some(error.kind()),
                    Poll::Pending => break,
                }
            }
            // Within TLS, what was written may wait for room in the socket.
            let flushed = match unsent.has_remaining() || write_error.is_some() {
                true => Poll::Pending,
                false => Pin::new(&mut self.stream).poll_flush(context),
            };
            if let Poll::Ready(Err(error)) = &flushed {
                write_error = Some(error.kind());
            }
            if early.is_none() {
                early = Some(ready!(self.poll_head(context, method)).map_err(|error| error.caused_by(write_error))?);
            }
            let sent = matches!(flushed, Poll::Ready(Ok(())));
            let refused = write_error.is_some() || early.as_ref().is_some_and(|head| head.status.as_u16() >= 400);
            match early.take() {
                Some(head) if sent => Poll::Ready(Ok(head)),
                Some(head) if refused => Poll::Ready(Ok(ResponseHead { keeps_alive: false, ..head })),
                waiting => {
                    early = waiting;
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn poll_head(&mut self, context: &mut Context<'_>, method: &Method) -> Poll<Result<ResponseHead, SendError>> {
        loop {
            if let Some(head) = ResponseHead::take(&mut self.read, method)? {
                return Poll::Ready(Ok(head));
            }
            let silent = self.read.is_empty();
            let ended = match ready!(self.poll_read(context)) {
                Ok(0) => io::ErrorKind::UnexpectedEof,
                Ok(_) => continue,
                Err(error) => error.kind(),
            };
            return Poll::Ready(Err(if silent { SendError::Silent(ended) } else { SendError::Broken(ended) }));
        }
    }

    /// The next piece of a response's body; `None` at its end.
    pub(crate) fn poll_body(
        &mut self,
        context: &mut Context<'_>,
        framing: &mut Framing,
    ) -> Poll<Option<Result<Bytes, BodyError>>> {
        loop {
            match framing.take(&mut self.read) {
                Ok(Piece::Data(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(Piece::End) => return Poll::Ready(None),
                Ok(Piece::NotYet) => {}
                Err(broken) => return Poll::Ready(Some(Err(broken.into()))),
            }
            let ended = match ready!(self.poll_read(context)) {
                Ok(0) if framing.ends_with_connection() => return Poll::Ready(None),
                Ok(0) => io::ErrorKind::UnexpectedEof,
                Ok(_) => continue,
                Err(error) => error.kind(),
            };
            return Poll::Ready(Some(Err(BodyError::Broken(ended))));
        }
    }

    /// Reads what is there into the buffer; 0 at the connection's end.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.read.capacity() - self.read.len() < LEAST_ROOM {
            self.read.reserve(READ_SIZE);
        }
        // Reading into a buffer's spare room needs no memory of its own between two polls.
        pin!(self.stream.read_buf(&mut self.read)).poll(context)
    }

    fn poll_write(&mut self, context: &mut Context<'_>, unsent: &mut impl Buf) -> Poll<io::Result<()>> {
        let mut slices = [io::IoSlice::new(&[]); 2];
        let count = unsent.chunks_vectored(&mut slices);
        match ready!(Pin::new(&mut self.stream).poll_write_vectored(context, &slices[..count])) {
            Ok(0) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Ok(written) => {
                unsent.advance(written);
                Poll::Ready(Ok(()))
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}
