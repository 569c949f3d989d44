//! The socket of a connection of HTTP/2, behind what was read of it to tell the protocol.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use isotherm_tls::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::closing;
use super::state::State;

/// A client's socket.
#[derive(Debug)]
pub(super) struct ClientStream {
    socket: RefCell<Stream>,
    /// What was read before the protocol was known.
    read_ahead: RefCell<BytesMut>,
}

/// The handle that the protocol reads from and writes to.
#[derive(Debug)]
pub(super) struct Shared(pub(super) Rc<ClientStream>);

impl ClientStream {
    pub(super) fn new(socket: Stream, read_ahead: BytesMut) -> ClientStream {
        ClientStream { socket: RefCell::new(socket), read_ahead: RefCell::new(read_ahead) }
    }
}

impl AsyncRead for Shared {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut read_ahead = self.0.read_ahead.borrow_mut();
        if !read_ahead.is_empty() {
            let length = read_ahead.len().min(buffer.remaining());
            buffer.put_slice(&read_ahead[..length]);
            read_ahead.advance(length);
            if read_ahead.is_empty() {
                *read_ahead = BytesMut::new();
            }
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut *self.0.socket.borrow_mut()).poll_read(context, buffer)
    }
}

impl AsyncWrite for Shared {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.socket.borrow_mut()).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.socket.borrow_mut()).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.socket.borrow_mut()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.socket.borrow_mut()).poll_shutdown(context)
    }
}

/// Closes a socket that the protocol is done with: at once, or, where its client may still be sending, once it has
/// stopped.
pub(super) async fn close(stream: Rc<ClientStream>, state: &State) {
    let Ok(stream) = Rc::try_unwrap(stream) else { return };
    if state.has_unread_body() {
        closing::linger(stream.socket.into_inner().into_tcp()).await;
    }
}
