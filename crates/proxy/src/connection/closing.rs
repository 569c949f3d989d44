//! Closing a socket that the protocol is done with, where that is more than dropping it.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// How long, and for how many bytes, a client may go on to send a body that nobody reads, so that it comes to read the
/// answer. Closed at once, the connection would be reset and the answer lost.
const LONGEST_LINGER: Duration = Duration::from_secs(2);
/// See [`LONGEST_LINGER`].
const MOST_LINGERED: usize = 64 * 1024 * 1024;

/// Closes with a reset, where an end would be mistaken for that of a body.
pub(super) fn reset(tcp: &TcpStream) {
    // Without the option, the socket closes in the ordinary way.
    let _ = tcp.set_zero_linger();
}

/// Closes once the client has stopped sending. Within TLS, too: what is left unread need not be decrypted.
pub(super) async fn linger(mut tcp: TcpStream) {
    let _ = tokio::time::timeout(LONGEST_LINGER, discard(&mut tcp)).await;
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
