//! Which protocol a client speaks, told by its first bytes.

use bytes::BytesMut;
use isotherm_tls::Stream;
use tokio::io::AsyncReadExt;

use crate::stop::Phase;
use crate::worker::Worker;

/// What every HTTP/2 connection with prior knowledge begins with (RFC 9113, section 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Room for the first bytes: most heads of requests fit.
const FIRST_READ: usize = 8 * 1024;

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// HTTP/1.1 or 1.0.
    Http1,
    /// HTTP/2, without having asked.
    Http2,
}

/// The protocol, and the bytes that were read to tell. `None` when the client left, said nothing for as long as it may
/// take to send a request's head, or the router stopped first.
pub(super) async fn detect(stream: &mut Stream, worker: &Worker) -> Option<(Protocol, BytesMut)> {
    let limit = worker.rules().timeouts.client_header;
    tokio::select! {
        biased;
        read = tokio::time::timeout(limit, read_preface(stream)) => read.ok()?,
        () = worker.stop.reached(Phase::Truncating) => None,
    }
}

async fn read_preface(stream: &mut Stream) -> Option<(Protocol, BytesMut)> {
    let mut read = BytesMut::with_capacity(FIRST_READ);
    loop {
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
        let seen = read.len().min(HTTP2_PREFACE.len());
        if read[..seen] != HTTP2_PREFACE[..seen] {
            return Some((Protocol::Http1, read));
        }
        if seen == HTTP2_PREFACE.len() {
            return Some((Protocol::Http2, read));
        }
    }
}
