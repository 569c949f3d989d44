//! Listening: one socket for each thread on one address, over which the kernel spreads the connections.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that may wait to be accepted, for each thread.
const BACKLOG: i32 = 4_096;

/// Opens so many sockets on one address. With port 0, all have the port that the first one got.
///
/// # Errors
///
/// When the address can't be listened on: taken by another process, not of this machine, or not allowed.
pub(crate) fn listen(address: SocketAddr, sockets: usize) -> io::Result<Vec<TcpListener>> {
    // Sockets that share a port don't complain when another process of the same user shares it, too: a first one that
    // does not share finds out.
    if address.port() != 0 {
        drop(open(address, false)?);
    }
    let first = open(address, true)?;
    let address = first.local_addr()?;
    let others = (1..sockets).map(|_| open(address, true));
    std::iter::once(Ok(first)).chain(others).collect()
}

/// A socket that listens already, once for each thread.
///
/// # Errors
///
/// When it can't be cloned: no more descriptors.
pub(crate) fn share(socket: &TcpListener, threads: usize) -> io::Result<Vec<TcpListener>> {
    socket.set_nonblocking(true)?;
    (0..threads).map(|_| socket.try_clone()).collect()
}

fn open(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for connections of the last run to time out.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sockets_share_one_port() {
        let sockets = listen("127.0.0.1:0".parse().unwrap(), 3).unwrap();
        let ports: Vec<_> = sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect();
        assert!(ports.len() == 3 && ports[0] != 0 && ports.iter().all(|port| *port == ports[0]));
    }

    #[test]
    fn a_port_that_is_taken_is_refused() {
        let taken = listen("127.0.0.1:0".parse().unwrap(), 2).unwrap();
        let error = listen(taken[0].local_addr().unwrap(), 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
