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
use crate::upstream::{BrokenFraming, Framing, Piece};

/// Room that is made for reading: most heads fit, with a short body.
pub(super) const READ_SIZE: usize = 8 * 1024;
/// Less room than this is worth making more. So much is left, too, behind what is expected: a read that fills all of it
/// would have to be followed by one that finds nothing.
const LEAST_ROOM: usize = 2 * 1024;
/// The most room that is made for a body whose length is known, or a request as long as the last one, of which nothing has
/// come.
const MOST_ROOM: usize = 64 * 1024;
/// How many times as much as has come of a body is made room for at once.
const GROWTH: usize = 8;
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
    /// The room in which the last request would have come by one read.
    room: Cell<usize>,
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
            room: Cell::new(READ_SIZE),
        }
    }

    /// A head of this length was taken, and a body of this framing follows.
    pub(super) fn expect_body(&self, head: usize, framing: Framing, waits_to_continue: bool) {
        let body = framing.remaining().unwrap_or(0);
        let whole = usize::try_from(body).unwrap_or(MOST_ROOM).saturating_add(head + LEAST_ROOM);
        self.room.set(whole.clamp(READ_SIZE, MOST_ROOM));
        self.framing.set(framing);
        self.to_tell.set(if waits_to_continue && !framing.has_ended() { CONTINUE.len() } else { 0 });
        self.reading.set(false);
        if framing.has_ended() {
            self.give_up_room();
        }
    }

    /// Lends what was read.
    pub(super) fn with_read<T>(&self, use_it: impl FnOnce(&mut BytesMut) -> T) -> T {
        use_it(&mut self.read.borrow_mut())
    }

    /// Reads more of a request; 0 at the connection's end.
    pub(super) fn poll_request(&self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // A request as long as the last one comes by one read.
        self.poll_read(context, self.room.get())
    }

    /// Reads, and makes so much room where there is nothing yet or none left; 0 at the connection's end.
    fn poll_read(&self, context: &mut Context<'_>, room: usize) -> Poll<io::Result<usize>> {
        if let Stream::Plain(tcp) = &*self.stream.borrow() {
            // No room is made before something is there.
            ready!(tcp.poll_read_ready(context))?;
        }
        let mut read = self.read.borrow_mut();
        let left = read.capacity() - read.len();
        if left < LEAST_ROOM || read.is_empty() && left < room {
            read.reserve(room.max(READ_SIZE));
        }
        let mut stream = self.stream.borrow_mut();
        // Reading into a buffer's spare room needs no memory of its own between two polls.
        pin!(stream.read_buf(&mut *read)).poll(context)
    }

    /// Room for more than a short request is given up once that has come, and by whoever waits for the next one; what is
    /// still held of the request keeps it for no longer than itself.
    pub(super) fn give_up_room(&self) {
        let mut read = self.read.borrow_mut();
        if read.is_empty() && (self.room.get() > READ_SIZE || read.capacity() > READ_SIZE) {
            *read = BytesMut::new();
        }
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
            match ready!(self.poll_read(context, LEAST_ROOM)) {
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
        loop {
            // A body of known length is read on while it comes, so that it stands in one piece.
            let (framing, read) = (self.framing.get(), self.read.borrow().len());
            let missing = framing.remaining().map_or(0, |length| length.saturating_sub(read as u64));
            if missing == 0 {
                match self.take_body() {
                    Ok(Piece::Data(piece)) => return Poll::Ready(Some(Ok(piece))),
                    Ok(Piece::End) => return Poll::Ready(None),
                    Ok(Piece::NotYet) => {}
                    Err(_) => return Poll::Ready(Some(Err(Unfinished::Broken))),
                }
            }
            let room = usize::try_from(missing).map_or(usize::MAX, |missing| missing.saturating_add(LEAST_ROOM));
            match self.poll_read(context, room.min(MOST_ROOM.max(read * GROWTH))) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return left,
                Poll::Pending => {
                    self.reading.set(true);
                    return Poll::Pending;
                }
            }
        }
    }

    /// Takes what there is of the body.
    fn take_body(&self) -> Result<Piece, BrokenFraming> {
        let mut framing = self.framing.get();
        let taken = framing.take(&mut self.read.borrow_mut());
        self.framing.set(framing);
        if framing.has_ended() {
            self.give_up_room();
        }
        taken
    }
}

impl RequestBody {
    /// How many bytes are left of it, where its head has told.
    pub(crate) fn length(&self) -> Option<u64> {
        self.0.framing.get().remaining()
    }

    /// How many bytes of it have come that wait for the rest, to be one piece with it.
    pub(crate) fn waiting(&self) -> usize {
        self.length().map_or(0, |_| self.0.read.borrow().len())
    }

    /// The next piece, which is all of a body whose head has told its length; `None` at the end.
    pub(crate) fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Unfinished>>> {
        self.0.reading.set(false);
        self.0.poll_body(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncWriteExt, ReadBuf};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn pair() -> (TcpStream, Socket) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        (client, Socket::new(Stream::Plain(stream), BytesMut::new()))
    }

    /// Sends a request and waits until all of it can be read.
    async fn send(client: &mut TcpStream, socket: &Socket, request: &[u8]) {
        client.write_all(request).await.unwrap();
        let mut seen = vec![0; request.len()];
        let mut peek = async || {
            let mut seen = ReadBuf::new(&mut seen);
            poll_fn(|context| socket.stream.borrow().tcp().poll_peek(context, &mut seen)).await.unwrap()
        };
        while peek().await < request.len() {
            tokio::task::yield_now().await;
        }
    }

    /// Reads once and takes a head of 8 bytes; how many bytes the read brought.
    async fn read_head(socket: &Socket, body: usize) -> usize {
        let read = poll_fn(|context| socket.poll_request(context)).await.unwrap();
        socket.with_read(|read| drop(read.split_to(8)));
        socket.expect_body(8, Framing::Length(body as u64), false);
        read
    }

    async fn read_body(socket: &Rc<Socket>) -> usize {
        let mut body = RequestBody(Rc::clone(socket));
        let mut length = 0;
        while let Some(piece) = poll_fn(|context| body.poll_piece(context)).await {
            length += piece.unwrap().len();
        }
        length
    }

    fn room(socket: &Socket) -> usize {
        socket.with_read(|read| read.capacity())
    }

    #[tokio::test]
    async fn a_request_as_long_as_the_last_one_comes_by_one_read_and_leaves_no_room_behind() {
        let (mut client, socket) = pair().await;
        let socket = Rc::new(socket);
        let request = vec![b'x'; 32 << 10];
        for expected in [READ_SIZE, request.len(), request.len()] {
            send(&mut client, &socket, &request).await;
            assert_eq!(read_head(&socket, request.len() - 8).await, expected);
            assert_eq!(read_body(&socket).await, request.len() - 8);
            assert_eq!(room(&socket), 0);
        }
        // No room is made before there is something to read, nor after a shorter request for more than that.
        let pending = poll_fn(|context| Poll::Ready(socket.poll_request(context).is_pending())).await;
        assert!(pending && room(&socket) == 0);
        send(&mut client, &socket, &request[..100]).await;
        assert_eq!(read_head(&socket, 92).await, 100);
        assert_eq!(read_body(&socket).await, 92);
        send(&mut client, &socket, &request[..100]).await;
        assert_eq!(read_head(&socket, 92).await, 100);
        assert!(room(&socket) <= READ_SIZE, "{}", room(&socket));
    }

    #[tokio::test]
    async fn room_grows_with_what_has_come_however_long_a_body_is_said_to_be() {
        let (mut client, socket) = pair().await;
        let socket = Rc::new(socket);
        send(&mut client, &socket, &[b'x'; 8]).await;
        assert_eq!(read_head(&socket, usize::MAX).await, 8);
        let mut body = RequestBody(Rc::clone(&socket));
        let mut sent = 0;
        for length in [1, READ_SIZE, MOST_ROOM, 16 * MOST_ROOM] {
            sent += length;
            let reading = poll_fn(|context| {
                assert!(body.poll_piece(context).is_pending());
                if body.waiting() == sent { Poll::Ready(()) } else { Poll::Pending }
            });
            let request = vec![b'x'; length];
            let (written, ()) = tokio::join!(client.write_all(&request), reading);
            written.unwrap();
            assert!(room(&socket) <= MOST_ROOM + 10 * sent, "{} for {sent}", room(&socket));
        }
    }
}
