//! Opening a connection to an instance.

use std::io;
use std::time::Duration;

use isotherm_core::Evidence;
use isotherm_fleet::{Address, InstanceTls};
use isotherm_tls::Stream;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// Nothing listens there.
    #[error("connection refused")]
    Refused,
    /// The way there is broken, the name does not resolve, or TLS was not agreed on.
    #[error("cannot connect: {0}")]
    Failed(io::ErrorKind),
    /// No answer in time.
    #[error("no connection within {0:?}")]
    TimedOut(Duration),
}

impl ConnectError {
    /// What it says about the instance.
    pub(crate) fn evidence(&self) -> Evidence {
        match self {
            ConnectError::Refused => Evidence::ConnectRefused,
            ConnectError::Failed(_) | ConnectError::TimedOut(_) => Evidence::ConnectFailed,
        }
    }
}

/// Connects within the limit, and within TLS where that is given; small writes leave at once.
pub(crate) async fn connect(
    address: &Address,
    tls: Option<&InstanceTls>,
    limit: Duration,
) -> Result<Stream, ConnectError> {
    match tokio::time::timeout(limit, address.dial(tls)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Err(ConnectError::Refused),
        Ok(Err(error)) => {
            tracing::debug!(url = %address.url(), %error, "no connection to an instance");
            Err(ConnectError::Failed(error.kind()))
        }
        Err(_) => Err(ConnectError::TimedOut(limit)),
    }
}
