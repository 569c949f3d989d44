//! Opening a connection to an instance.

use std::io;
use std::time::Duration;

use isotherm_config::Host;
use isotherm_core::Evidence;
use isotherm_fleet::Address;
use tokio::net::TcpStream;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// Nothing listens there.
    #[error("connection refused")]
    Refused,
    /// The way there is broken, or the name does not resolve.
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

/// Connects within the limit; small writes leave at once.
pub(crate) async fn connect(address: &Address, limit: Duration) -> Result<TcpStream, ConnectError> {
    let connecting = async {
        match (address.socket(), address.host()) {
            (Some(socket), _) => TcpStream::connect(socket).await,
            (None, Host::Name(name)) => TcpStream::connect((&**name, address.port())).await,
            (None, Host::Address(ip)) => TcpStream::connect((*ip, address.port())).await,
        }
    };
    match tokio::time::timeout(limit, connecting).await {
        Ok(Ok(stream)) => {
            // Worth nothing to fail for: without it, answers are merely slower.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Err(ConnectError::Refused),
        Ok(Err(error)) => Err(ConnectError::Failed(error.kind())),
        Err(_) => Err(ConnectError::TimedOut(limit)),
    }
}
