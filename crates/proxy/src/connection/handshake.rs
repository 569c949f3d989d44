//! TLS with a client, where the listener has a certificate: agreed on in time, or not at all.

use std::io;
use std::net::SocketAddr;

use isotherm_tls::Stream;
use isotherm_wire::error::{Dialect, ErrorBody, ErrorKind};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::stop::Phase;
use crate::worker::Worker;

/// The first byte of whatever begins with a handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;

/// The connection, ready for a protocol. `None` when there is none: the client left, did not finish within the time that
/// it may take to send a request's head, does not agree, or the router stopped first.
pub(super) async fn complete(tcp: TcpStream, client: SocketAddr, worker: &Worker) -> Option<Stream> {
    let rules = worker.rules();
    let Some(tls) = &rules.tls else { return Some(Stream::Plain(tcp)) };
    let agreeing = async {
        let mut first = [0];
        match tcp.peek(&mut first).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ if first[0] == HANDSHAKE => tls.accept(tcp).await,
            _ => Err(refuse(tcp).await),
        }
    };
    let agreed = tokio::select! {
        biased;
        agreed = tokio::time::timeout(rules.timeouts.client_header, agreeing) => agreed,
        () = worker.stop.reached(Phase::Truncating) => return None,
    };
    match agreed {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => tracing::debug!(%client, %error, "no TLS with a client"),
        Err(_) => tracing::debug!(%client, "no TLS with a client in time"),
    }
    None
}

/// Tells a client in the clear that it knocked at the wrong door, in words that a browser or SDK shows.
async fn refuse(mut tcp: TcpStream) -> io::Error {
    let message = "this port speaks TLS: use https://";
    let body = ErrorBody::new(ErrorKind::InvalidRequest, message).to_json(Dialect::OpenAi);
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let told = async {
        tcp.write_all(&[head.as_bytes(), &body].concat()).await?;
        tcp.shutdown().await
    };
    told.await.err().unwrap_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it speaks in the clear"))
}
