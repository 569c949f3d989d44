//! HTTP/2 frame by frame, so that tests can send what no library would (RFC 9113), with header blocks that use no
//! compression (RFC 7541).

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::PATIENCE;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

/// On DATA and HEADERS; on SETTINGS and PING the same bit says that it acknowledges.
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
pub(crate) const WITH_PRIORITY: u8 = 0x20;

/// A frame (section 4.1).
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Values of SETTINGS (section 6.5.1).
pub(crate) fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> =
        values.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat()).collect();
    frame(SETTINGS, 0, 0, &payload)
}

/// More room for what the router sends.
pub(crate) fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

/// Fields, each as a literal that is not indexed (RFC 7541, section 6.2.2).
pub(crate) fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            assert!(text.len() < 127, "a length of one byte");
            block.push(text.len() as u8);
            block.extend(text.bytes());
        }
    }
    block
}

/// A frame as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The error that it tells, if it is one that tells any.
    pub(crate) fn error(&self) -> Option<u32> {
        let at = match self.kind {
            RST_STREAM => 0,
            GOAWAY => 4,
            _ => return None,
        };
        Some(u32::from_be_bytes(self.payload.get(at..at + 4)?.try_into().ok()?))
    }
}

/// A connection on which frames are written and read.
pub(crate) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    /// Connects, and says nothing yet.
    pub(crate) async fn to(address: SocketAddr) -> Connection {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Connection { stream, read: Vec::new() }
    }

    /// Connects and begins with these settings.
    pub(crate) async fn begun(address: SocketAddr, values: &[(u16, u32)]) -> Connection {
        let mut connection = Connection::to(address).await;
        connection.send([PREFACE, &settings(values)].concat()).await;
        connection
    }

    /// Writes what the router may not want to take any more.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// The next frame; `None` when the connection has ended.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        tokio::time::timeout(PATIENCE, self.read_frame()).await.expect("neither a frame nor the end")
    }

    async fn read_frame(&mut self) -> Option<Frame> {
        loop {
            if let [a, b, c, kind, flags, s0, s1, s2, s3, rest @ ..] = &self.read[..] {
                let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
                if let Some(payload) = rest.get(..length) {
                    let stream = u32::from_be_bytes([*s0, *s1, *s2, *s3]);
                    let frame = Frame { kind: *kind, flags: *flags, stream, payload: payload.to_vec() };
                    self.read.drain(..9 + length);
                    return Some(frame);
                }
            }
            if !matches!(self.stream.read_buf(&mut self.read).await, Ok(1..)) {
                return None;
            }
        }
    }
}
