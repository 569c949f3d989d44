//! One user's connection, kept alive between requests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use isotherm_report::{Failure, FailureKind};
use tokio::net::TcpStream;

use crate::Target;

/// A connection to the target, opened when it is first needed and again after it broke.
#[derive(Debug)]
pub(crate) struct Connection {
    target: Arc<Target>,
    connect_timeout: Duration,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    pub(crate) fn new(target: Arc<Target>, connect_timeout: Duration) -> Connection {
        Connection { target, connect_timeout, sender: None }
    }

    /// Takes the connection, ready for a request; who finishes the exchange cleanly gives it back by
    /// [`Connection::keep`]. One that the server closed meanwhile is replaced, before anything is sent on it.
    pub(crate) async fn take(&mut self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        if let Some(mut sender) = self.sender.take()
            && sender.ready().await.is_ok()
        {
            return Ok(sender);
        }
        let failure = |detail| Failure { kind: FailureKind::Connect, detail };
        match tokio::time::timeout(self.connect_timeout, connect(&self.target)).await {
            Ok(Ok(sender)) => Ok(sender),
            Ok(Err(error)) => Err(failure(format!("{}: {error}", self.target))),
            Err(_) => Err(failure(format!("{}: no connection within {:?}", self.target, self.connect_timeout))),
        }
    }

    /// Keeps the connection for the next request. Its response must have been read to the end.
    pub(crate) fn keep(&mut self, sender: SendRequest<Full<Bytes>>) {
        self.sender = Some(sender);
    }
}

async fn connect(target: &Target) -> Result<SendRequest<Full<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(target.address()).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Ends when the sender is dropped or the server closes; what went wrong shows at the request.
    tokio::spawn(connection);
    Ok(sender)
}
