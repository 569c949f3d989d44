//! The socket of a connection of HTTP/1, shared by the connection, which reads heads and writes answers, and the request
//! under way, which reads its body.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use isotherm_tls::Stream;
use tokio::io::{AsyncReadExt, AsyncWrite, Interest};

use crate::connection::incoming::Unfinished;
use crate::upstream::{Framing, Piece};

/// Room that is made for reading: most heads fit, with a short body.
const READ_SIZE: usize = 8 * 1024;
/// Less room than this is worth making more.
const LEAST_ROOM: usize = 2 * 1024;
/// The most room that is made at once for a body whose length is known.
const MOST_ROOM: u64 = 64 * 1024;
/// What a client is told that waits before it sends a body (RFC 9110, section 10.1.1).
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A client's socket, and what was read from it.
#[derive(Debug)]
pub(super) struct Socket {
    stream: RefCell<Stream>,
    /// What was read and not yet taken.
    read: RefCell<BytesMut>,
    /// How far the body of the present request has come.
    framing: Cell<Framing>,
    /// How many bytes are left of telling the client to go on.
    to_tell: Cell<usize>,
    /// Whether whoever reads the body waits for the socket, so that the client's leaving wakes it.
    reading: Cell<bool>,
    /// Whether more room was made than a connection keeps that waits for a request.
    is_large: Cell<bool>,
}

/// The body of the present request.
#[derive(Debug)]
pub(crate) struct RequestBody(pub(super) Rc<Socket>);

impl Socket {
    pub(super) fn new(stream: Stream, read: BytesMut) -> Socket {
        Socket {
            stream: RefCell::new(stream),
            read: RefCell::new(read),
            framing: Cell::new(Framing::EMPTY),
            to_tell: Cell::new(0),
            reading: Cell::new(false),
            is_large: Cell::new(false),
        }
    }

    /// A body of this framing follows.
    pub(super) fn expect_body(&self, framing: Framing, waits_to_continue: bool) {
        self.framing.set(framing);
        self.to_tell.set(if waits_to_continue && !framing.has_ended() { CONTINUE.len() } else { 0 });
        self.reading.set(false);
    }

    /// Lends what was read.
    pub(super) fn with_read<T>(&self, use_it: impl FnOnce(&mut BytesMut) -> T) -> T {
        use_it(&mut self.read.borrow_mut())
    }

    /// Reads more; 0 at the connection's end.
    pub(super) fn poll_read(&self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut read = self.read.borrow_mut();
        if read.capacity() - read.len() < LEAST_ROOM {
            read.reserve(READ_SIZE);
        }
        self.poll_read_into(context, &mut read)
    }

    /// The room for large bodies is given up while nothing is to be read.
    pub(super) fn give_up_room(&self) {
        let mut read = self.read.borrow_mut();
        if read.is_empty() && self.is_large.take() {
            *read = BytesMut::new();
        }
    }

    fn poll_read_into(&self, context: &mut Context<'_>, read: &mut BytesMut) -> Poll<io::Result<usize>> {
        let mut stream = self.stream.borrow_mut();
        // Reading into a buffer's spare room needs no memory of its own between two polls.
        pin!(stream.read_buf(read)).poll(context)
    }

    /// Writes some of the slices' bytes, behind what the client is still to be told first.
    pub(super) fn poll_write(&self, context: &mut Context<'_>, slices: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let begun = (1..CONTINUE.len()).contains(&self.to_tell.get());
        if begun {
            ready!(self.poll_tell(context))?;
        }
        let written = ready!(Pin::new(&mut *self.stream.borrow_mut()).poll_write_vectored(context, slices))?;
        if written == 0 { Poll::Ready(Err(io::ErrorKind::WriteZero.into())) } else { Poll::Ready(Ok(written)) }
    }

    /// Within TLS, what was written may wait for room in the socket.
    pub(super) fn poll_flush(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream.borrow_mut()).poll_flush(context)
    }

    /// Ends the writing side.
    pub(super) fn poll_shutdown(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream.borrow_mut()).poll_shutdown(context)
    }

    /// The socket alone, once the protocol is done with.
    pub(super) fn into_stream(self) -> Stream {
        self.stream.into_inner()
    }

    /// Passes over what has come of a body that nobody read; whether that was all of it.
    pub(super) fn pass_over_body(&self) -> bool {
        let mut framing = self.framing.get();
        let mut read = self.read.borrow_mut();
        while !framing.has_ended() {
            match framing.take(&mut read) {
                Ok(Piece::Data(_)) => {}
                Ok(Piece::End | Piece::NotYet) | Err(_) => break,
            }
        }
        self.framing.set(framing);
        framing.has_ended()
    }

    /// Whether the client has closed its side, while its request is under way. The task is woken when it does, except
    /// while bytes are there that are not to be read yet: then `None` says that the question has to be asked again.
    pub(super) fn poll_gone(&self, context: &mut Context<'_>) -> Poll<Option<()>> {
        if !self.framing.get().has_ended() && self.reading.get() {
            return Poll::Pending;
        }
        if self.framing.get().has_ended() && self.read.borrow().is_empty() {
            match ready!(self.poll_read(context)) {
                Ok(0) | Err(_) => return Poll::Ready(Some(())),
                Ok(_) => {}
            }
        }
        let stream = self.stream.borrow();
        let tcp = stream.tcp();
        if tcp.poll_read_ready(context).is_pending() {
            return Poll::Pending;
        }
        match pin!(tcp.ready(Interest::READABLE)).poll(context) {
            Poll::Ready(Ok(ready)) if !ready.is_read_closed() => Poll::Ready(None),
            Poll::Ready(_) => Poll::Ready(Some(())),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Tells the client to go on.
    fn poll_tell(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = self.stream.borrow_mut();
        while self.to_tell.get() > 0 {
            let left = &CONTINUE[CONTINUE.len() - self.to_tell.get()..];
            match ready!(Pin::new(&mut *stream).poll_write(context, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.to_tell.set(self.to_tell.get() - written),
            }
        }
        Pin::new(&mut *stream).poll_flush(context)
    }

    fn poll_body(&self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Unfinished>>> {
        let left = Poll::Ready(Some(Err(Unfinished::Left)));
        if self.to_tell.get() > 0 && ready!(self.poll_tell(context)).is_err() {
            return left;
        }
        let mut framing = self.framing.get();
        let mut read = self.read.borrow_mut();
        loop {
            // A body of known length is read on while it comes, so that it stands in one piece.
            let missing = framing.remaining().map_or(0, |length| length.saturating_sub(read.len() as u64));
            if missing == 0 || framing == Framing::CHUNKED {
                let taken = framing.take(&mut read);
                self.framing.set(framing);
                match taken {
                    Ok(Piece::Data(piece)) => return Poll::Ready(Some(Ok(piece))),
                    Ok(Piece::End) => return Poll::Ready(None),
                    Ok(Piece::NotYet) => {}
                    Err(_) => return Poll::Ready(Some(Err(Unfinished::Broken))),
                }
            }
            let room = (missing.min(MOST_ROOM) as usize).max(LEAST_ROOM);
            if read.capacity() - read.len() < room {
                self.is_large.set(room > READ_SIZE);
                read.reserve(room.max(READ_SIZE));
            }
            match self.poll_read_into(context, &mut read) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return left,
                Poll::Pending if missing > 0 && !read.is_empty() => {
                    let taken = framing.take(&mut read);
                    self.framing.set(framing);
                    if let Ok(Piece::Data(piece)) = taken {
                        return Poll::Ready(Some(Ok(piece)));
                    }
                    return Poll::Pending;
                }
                Poll::Pending => {
                    self.reading.set(true);
                    return Poll::Pending;
                }
            }
        }
    }
}

impl RequestBody {
    /// How many bytes are left of it, where its head has told.
    pub(crate) fn length(&self) -> Option<u64> {
        self.0.framing.get().remaining()
    }

    /// The next piece; `None` at the end.
    pub(crate) fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Unfinished>>> {
        self.0.reading.set(false);
        self.0.poll_body(context)
    }
}
