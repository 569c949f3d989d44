//! The socket of a connection, read and written by the protocol and watched by the driver.

use std::cell::RefCell;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use isotherm_tls::Stream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use super::refusal;
use super::state::State;

/// How long, and for how many bytes, a client may go on to send a body that nobody reads, so that it comes to read the
/// answer. Closed at once, the connection would be reset and the answer lost.
const LONGEST_LINGER: Duration = Duration::from_secs(2);
/// See [`LONGEST_LINGER`].
const MOST_LINGERED: usize = 64 * 1024 * 1024;

/// A client's socket.
#[derive(Debug)]
pub(super) struct ClientStream {
    socket: RefCell<Stream>,
    /// What was read before the protocol was known.
    read_ahead: RefCell<BytesMut>,
    /// What is left to be written of a refusal that was put into words.
    refusal: RefCell<Bytes>,
    state: Rc<State>,
}

/// The handle that the protocol reads from and writes to.
#[derive(Debug)]
pub(super) struct Shared(pub(super) Rc<ClientStream>);

impl ClientStream {
    pub(super) fn new(socket: Stream, read_ahead: BytesMut, state: Rc<State>) -> ClientStream {
        let (socket, read_ahead) = (RefCell::new(socket), RefCell::new(read_ahead));
        ClientStream { socket, read_ahead, refusal: RefCell::default(), state }
    }

    /// Whether the client has closed its side, found out without reading: for a client that has sent further requests
    /// already, which are not to be read yet. The task is woken when something changes, except while unread bytes are
    /// there: then `None` says that the question has to be asked again.
    pub(super) fn poll_gone(&self, context: &mut Context<'_>) -> Poll<Option<()>> {
        let socket = self.socket.borrow();
        let tcp = socket.tcp();
        if tcp.poll_read_ready(context).is_pending() {
            return Poll::Pending;
        }
        match pin!(tcp.ready(Interest::READABLE)).poll(context) {
            Poll::Ready(Ok(ready)) if !ready.is_read_closed() => Poll::Ready(None),
            Poll::Ready(_) => Poll::Ready(Some(())),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Takes what the protocol writes by itself, while no request is under way, to refuse what is no request: it is
    /// written in words instead. False when it is anything else.
    fn takes_refusal(&self, written: &[u8]) -> bool {
        let Some(limits) = self.state.refusing() else { return false };
        let Some(answer) = refusal::in_words(written, limits) else { return false };
        self.state.refuse();
        *self.refusal.borrow_mut() = answer;
        true
    }

    /// Ready when nothing is left of a refusal.
    fn poll_refusal(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut refusal = self.refusal.borrow_mut();
        while !refusal.is_empty() {
            let written = ready!(Pin::new(&mut *self.socket.borrow_mut()).poll_write(context, &refusal))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            refusal.advance(written);
        }
        Poll::Ready(Ok(()))
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
            self.0.state.note_read(false, true);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut *self.0.socket.borrow_mut()).poll_read(context, buffer);
        self.0.state.note_read(polled.is_pending(), buffer.filled().len() > before);
        polled
    }
}

impl AsyncWrite for Shared {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.0.poll_refusal(context))?;
        if self.0.takes_refusal(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut *self.0.socket.borrow_mut()).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.0.poll_refusal(context))?;
        if let [only] = slices
            && self.0.takes_refusal(only)
        {
            return Poll::Ready(Ok(only.len()));
        }
        Pin::new(&mut *self.0.socket.borrow_mut()).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.0.poll_refusal(context))?;
        ready!(Pin::new(&mut *self.0.socket.borrow_mut()).poll_flush(context))?;
        self.0.state.note_flush();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.0.poll_refusal(context))?;
        Pin::new(&mut *self.0.socket.borrow_mut()).poll_shutdown(context)
    }
}

/// Closes a socket that the protocol is done with: at once; with a reset where an end would be mistaken; or, where its
/// client may still be sending, once it has stopped.
pub(super) async fn close(stream: Rc<ClientStream>, state: &State) {
    let Ok(stream) = Rc::try_unwrap(stream) else { return };
    // Within TLS, too: what is left unread need not be decrypted, and its end has been told or is not to be.
    let mut tcp = stream.socket.into_inner().into_tcp();
    if state.has_broken_off() {
        // Without the option, the socket closes in the ordinary way.
        let _ = tcp.set_zero_linger();
    } else if state.has_unread_body() {
        let _ = tokio::time::timeout(LONGEST_LINGER, discard(&mut tcp)).await;
    }
}

async fn discard(tcp: &mut TcpStream) {
    let mut buffer = vec![0; 64 * 1024];
    let mut discarded = 0;
    while discarded < MOST_LINGERED {
        match tcp.read(&mut buffer).await {
            Ok(length) if length > 0 => discarded += length,
            Ok(_) | Err(_) => return,
        }
    }
}
