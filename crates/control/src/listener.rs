//! The admin plane's listener: connections in the clear, or within TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use isotherm_config::ServerTls;
use isotherm_tls::Stream;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How long a client may take to agree on TLS.
const LONGEST_HANDSHAKE: Duration = Duration::from_secs(10);
/// The most clients that may be about it at once; further ones wait.
const MOST_HANDSHAKES: usize = 64;
/// How long to wait when no connection can be accepted because descriptors or memory are used up.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections, each ready for HTTP.
#[derive(Debug)]
pub(crate) struct Listener {
    tcp: TcpListener,
    tls: Option<Arc<ArcSwap<ServerTls>>>,
    handshakes: JoinSet<io::Result<(Stream, SocketAddr)>>,
}

impl Listener {
    pub(crate) fn new(tcp: TcpListener, tls: Option<Arc<ArcSwap<ServerTls>>>) -> Listener {
        Listener { tcp, tls, handshakes: JoinSet::new() }
    }

    async fn accept_tcp(tcp: &TcpListener) -> (TcpStream, SocketAddr) {
        loop {
            match tcp.accept().await {
                Ok(accepted) => return accepted,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

impl axum::serve::Listener for Listener {
    type Io = Stream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Stream, SocketAddr) {
        loop {
            let has_room = self.handshakes.len() < MOST_HANDSHAKES;
            tokio::select! {
                Some(done) = self.handshakes.join_next() => match done {
                    Ok(Ok(ready)) => return ready,
                    Ok(Err(error)) => tracing::debug!(%error, "no TLS with a client of the admin plane"),
                    Err(error) => tracing::error!(%error, "a handshake of the admin plane was dropped"),
                },
                (tcp, client) = Listener::accept_tcp(&self.tcp), if has_room => match &self.tls {
                    None => return (Stream::Plain(tcp), client),
                    Some(tls) => {
                        let tls = tls.load_full();
                        self.handshakes.spawn(async move {
                            let agreed = tokio::time::timeout(LONGEST_HANDSHAKE, tls.accept(tcp)).await;
                            Ok((agreed.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?, client))
                        });
                    }
                },
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}
