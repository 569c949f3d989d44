//! The listening socket that a process is started with, as systemd's socket activation hands it over: it outlives
//! processes, so that one takes over from another without a refused connection.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use listenfd::ListenFd;

use crate::exit::Failure;

/// The first of the sockets in `LISTEN_FDS`, if there is one. It must listen where the configuration says, for that is
/// what who may call was checked against.
pub(crate) fn listener(configured: SocketAddr) -> Result<Option<Arc<TcpListener>>, Failure> {
    let taken = ListenFd::from_env().take_tcp_listener(0);
    let Some(socket) = taken.map_err(|error| unusable(&error))? else { return Ok(None) };
    let address = socket.local_addr().map_err(|error| unusable(&error))?;
    let same_port = configured.port() == 0 || configured.port() == address.port();
    if address.ip() != configured.ip() || !same_port {
        return Err(Failure::Running(format!(
            "the socket that was handed over (LISTEN_FDS) listens on {address}, but `listen` is {configured}; make them the same"
        )));
    }
    Ok(Some(Arc::new(socket)))
}

fn unusable(error: &std::io::Error) -> Failure {
    Failure::Running(format!("the socket that was handed over (LISTEN_FDS) can't be used: {error}"))
}
