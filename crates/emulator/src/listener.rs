//! Accepts connections and serves HTTP/1.1 and HTTP/2 on them, until told to stop.

use std::rc::Rc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::emulator::Emulator;
use crate::respond::respond;

/// Pause after a failed accept or bind, such as too many open files.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Accepts until `stopping` turns true, then closes the port.
pub(crate) async fn accept(emulator: Rc<Emulator>, mut stopping: watch::Receiver<bool>) {
    let connections_stopping = stopping.clone();
    loop {
        tokio::select! {
            accepted = emulator.port().accept() => match accepted {
                Ok(stream) => {
                    let connection = serve(Rc::clone(&emulator), stream, connections_stopping.clone());
                    emulator.tasks().spawn(connection);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            },
            () = reopen(&emulator) => {}
            _ = stopping.wait_for(|stopping| *stopping) => return emulator.port().close(),
        }
    }
}

/// Where a fault has ended but the port could not be opened again, tries until it can; else waits for ever.
async fn reopen(emulator: &Emulator) {
    while emulator.port().is_open() || emulator.faults().get().refuse_connections {
        emulator.faults_changed().notified().await;
    }
    if let Err(error) = emulator.port().open() {
        tracing::warn!(address = %emulator.port().address(), %error, "cannot listen again");
        tokio::time::sleep(RETRY_PAUSE).await;
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
