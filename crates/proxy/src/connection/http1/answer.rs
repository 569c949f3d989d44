//! The answer to a request on its way to the client: its head, its body in the framing that the client understands, and
//! as few writes as there can be.

use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::{HeaderMap, Response, StatusCode};

use super::socket::Socket;
use crate::answer::Body;
use crate::worker::Worker;

/// Pieces that are ready together leave together, up to so many bytes.
const MOST_GATHERED: usize = 64 * 1024;
/// The most memory that is used again for a later answer.
const MOST_KEPT: usize = 8 * 1024;
/// A longer piece is not copied.
const LONGEST_COPIED: usize = 8 * 1024;
const LINE_END: &[u8] = b"\r\n";

/// What the client's request says about how it is answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    /// It is of HTTP/1.0, which knows no chunks.
    pub(super) is_old: bool,
    /// Its method is HEAD.
    pub(super) is_head: bool,
    /// Whether the connection is kept behind the answer.
    pub(super) keeps_alive: bool,
}

/// How the answer's body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// There is no body, whatever comes.
    Nothing,
    /// After the length that the head tells.
    Length,
    /// In chunks.
    Chunks,
    /// With the connection.
    Close,
}

/// An answer under way.
pub(super) struct Answer {
    body: Body,
    ending: Ending,
    /// The body has come to its end, for better or worse.
    has_ended: bool,
    breaks_off: bool,
    /// What was written may not have left.
    is_flushing: bool,
    /// What is to be written: first this, from here on,
    gathered: Vec<u8>,
    from: usize,
    /// then this,
    piece: Bytes,
    /// then this.
    behind: &'static [u8],
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// It was written as a whole.
    Whole,
    /// Its body broke off; what had come of it was written.
    BrokenOff,
}

impl Answer {
    /// An answer, of which nothing was written yet. `memory` is used for what is gathered.
    pub(super) fn new(response: Response<Body>, manner: Manner, worker: &Worker, memory: Vec<u8>) -> Answer {
        let (head, body) = response.into_parts();
        let length = body.length();
        let is_empty = manner.is_head || matches!(head.status.as_u16(), 204 | 304);
        let ending = match length {
            _ if is_empty => Ending::Nothing,
            Some(_) => Ending::Length,
            None if manner.is_old => Ending::Close,
            None => Ending::Chunks,
        };
        let mut gathered = memory;
        gathered.clear();
        write_status(&mut gathered, head.status, manner.is_old);
        // Of an answer without its body, the head still tells how long it would be.
        let told = head.headers.get(CONTENT_LENGTH).filter(|_| is_empty);
        write_headers(&mut gathered, &head.headers);
        match (told, length) {
            _ if head.status == StatusCode::NO_CONTENT => {}
            (Some(told), _) => write_line(&mut gathered, "content-length", told.as_bytes()),
            (None, Some(_)) if is_empty && matches!(body, Body::Relayed(_)) => {}
            (None, Some(length)) => write_length(&mut gathered, length),
            (None, None) if ending == Ending::Chunks => gathered.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            (None, None) => {}
        }
        match (manner.keeps_alive && ending != Ending::Close, manner.is_old) {
            (false, false) => gathered.extend_from_slice(b"connection: close\r\n"),
            (true, true) => gathered.extend_from_slice(b"connection: keep-alive\r\n"),
            (true, false) | (false, true) => {}
        }
        if !head.headers.contains_key(DATE) {
            worker.with_date(|date| write_line(&mut gathered, "date", date));
        }
        gathered.extend_from_slice(LINE_END);
        let (piece, behind) = (Bytes::new(), &b""[..]);
        Answer {
            body,
            ending,
            has_ended: false,
            breaks_off: false,
            is_flushing: false,
            gathered,
            from: 0,
            piece,
            behind,
        }
    }

    /// Whether the connection has to be closed behind it, so that the client finds its end.
    pub(super) fn ends_by_close(&self) -> bool {
        self.ending == Ending::Close
    }

    /// Whether something is left that the client has to take.
    pub(super) fn waits_for_client(&self) -> bool {
        self.is_flushing || self.left() > 0
    }

    /// The memory, to be used again, unless it is more than a connection keeps that waits for a request.
    pub(super) fn into_memory(self) -> Vec<u8> {
        if self.gathered.capacity() > MOST_KEPT { Vec::new() } else { self.gathered }
    }

    /// Goes on until the answer has ended, or the instance or the client has to be waited for.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, socket: &Socket) -> Poll<io::Result<Ended>> {
        loop {
            self.gather(context);
            if self.left() == 0 {
                self.is_flushing = true;
                ready!(socket.poll_flush(context))?;
                self.is_flushing = false;
                return match (self.has_ended, self.breaks_off) {
                    (false, _) => Poll::Pending,
                    (true, true) => Poll::Ready(Ok(Ended::BrokenOff)),
                    (true, false) => Poll::Ready(Ok(Ended::Whole)),
                };
            }
            let slices =
                [IoSlice::new(&self.gathered[self.from..]), IoSlice::new(&self.piece), IoSlice::new(self.behind)];
            let count = if self.piece.is_empty() { 1 } else { 3 };
            let written = ready!(socket.poll_write(context, &slices[..count]))?;
            self.advance(written);
        }
    }

    /// Takes what there is of the body.
    fn gather(&mut self, context: &mut Context<'_>) {
        while !self.has_ended && self.piece.is_empty() && self.left() < MOST_GATHERED {
            match self.body.poll_piece(context) {
                Poll::Ready(Some(Ok(piece))) => self.push(piece),
                Poll::Ready(None) => {
                    self.end();
                    if self.ending == Ending::Chunks {
                        self.gathered.extend_from_slice(b"0\r\n\r\n");
                    }
                }
                Poll::Ready(Some(Err(_))) => {
                    self.end();
                    self.breaks_off = true;
                }
                Poll::Pending => return,
            }
        }
    }

    /// Nothing more comes; what is noted of the request is counted before its client sees the end.
    fn end(&mut self) {
        self.has_ended = true;
        self.body = Body::Whole(Bytes::new());
    }

    fn push(&mut self, piece: Bytes) {
        let framed = match self.ending {
            // No chunk is empty but the last.
            _ if piece.is_empty() => return,
            Ending::Nothing => return,
            Ending::Length | Ending::Close => false,
            Ending::Chunks => true,
        };
        if framed {
            write_size(&mut self.gathered, piece.len());
        }
        if piece.len() > LONGEST_COPIED {
            self.piece = piece;
            self.behind = if framed { LINE_END } else { b"" };
            return;
        }
        self.gathered.extend_from_slice(&piece);
        if framed {
            self.gathered.extend_from_slice(LINE_END);
        }
    }

    fn left(&self) -> usize {
        self.gathered.len() - self.from + self.piece.len() + self.behind.len()
    }

    fn advance(&mut self, written: usize) {
        let gathered = written.min(self.gathered.len() - self.from);
        self.from += gathered;
        let piece = (written - gathered).min(self.piece.len());
        self.piece.advance(piece);
        self.behind = &self.behind[written - gathered - piece..];
        if self.from == self.gathered.len() {
            self.gathered.clear();
            self.from = 0;
        }
    }
}

fn write_status(head: &mut Vec<u8>, status: StatusCode, is_old: bool) {
    head.extend_from_slice(if is_old { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
    head.extend_from_slice(status.as_str().as_bytes());
    head.push(b' ');
    head.extend_from_slice(status.canonical_reason().unwrap_or("Unknown").as_bytes());
    head.extend_from_slice(LINE_END);
}

/// All but those that concern the connection, which are the router's own.
fn write_headers(head: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        if *name != CONTENT_LENGTH && *name != CONNECTION && *name != TRANSFER_ENCODING {
            write_line(head, name.as_str(), value.as_bytes());
        }
    }
}

fn write_line(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(LINE_END);
}

fn write_length(head: &mut Vec<u8>, length: u64) {
    head.extend_from_slice(b"content-length: ");
    crate::upstream::write_number(head, length, 10);
    head.extend_from_slice(LINE_END);
}

fn write_size(head: &mut Vec<u8>, size: usize) {
    crate::upstream::write_number(head, size as u64, 16);
    head.extend_from_slice(LINE_END);
}
