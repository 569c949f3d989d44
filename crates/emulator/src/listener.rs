//! Accepts connections and serves HTTP/1.1 and HTTP/2 on them, until told to stop; refuses them while a fault says so.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use crate::emulator::Emulator;
use crate::respond::respond;

/// Connections that the kernel keeps for us (uvicorn's default).
const BACKLOG: u32 = 2_048;

/// Pause after a failed accept or bind, such as too many open files.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Binds with `SO_REUSEADDR`, so that a port freed a moment ago can be taken again.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts until `stopping` turns true. While the fault is on there is no listening socket.
pub(crate) async fn accept(
    emulator: Rc<Emulator>,
    listener: TcpListener,
    address: SocketAddr,
    mut stopping: watch::Receiver<bool>,
) {
    let mut listener = Some(listener);
    let connections_stopping = stopping.clone();
    loop {
        let refusing = emulator.faults().get().refuse_connections;
        match (&listener, refusing) {
            (Some(_), true) => listener = None,
            (None, false) => match bind(address) {
                Ok(bound) => listener = Some(bound),
                Err(error) => {
                    tracing::warn!(%address, %error, "cannot listen again");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            },
            _ => {}
        }
        tokio::select! {
            accepted = accept_one(listener.as_ref()) => match accepted {
                Ok(stream) => {
                    let connection = serve(Rc::clone(&emulator), stream, connections_stopping.clone());
                    emulator.tasks().spawn(connection);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            },
            () = emulator.faults_changed().notified() => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}

/// Waits for ever where there is no listener.
async fn accept_one(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => Ok(listener.accept().await?.0),
        None => std::future::pending().await,
    }
}

async fn serve(emulator: Rc<Emulator>, stream: TcpStream, mut stopping: watch::Receiver<bool>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot switch off Nagle's algorithm");
    }
    let mut builder = auto::Builder::new(emulator.tasks().clone());
    // hyper times the wait for a request's head, the idle time before it included: uvicorn's keep-alive time-out.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(emulator.config().keep_alive);
    builder.http2().timer(TokioTimer::new());
    let service = service_fn(|request| respond(Rc::clone(&emulator), request));
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = stopping.wait_for(|stopping| *stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
