//! One POST of a message, on a connection of its own, that ends in time.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use isotherm_config::{ClientTls, Scheme, WebhookUrl};
use isotherm_tls::{ServerIdentity, Stream};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Why a message was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    #[error("no connection: {0}")]
    Connect(#[source] io::Error),
    #[error("the connection broke: {0}")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("answered with {0}")]
    Refused(StatusCode),
}

impl PostError {
    /// Whether another attempt may help.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            PostError::Refused(status) => status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS,
            PostError::TimedOut(_) | PostError::Connect(_) | PostError::Broken(_) => true,
        }
    }
}

/// Sends a message once, which may take so long in all. A redirect is not followed: it could lead a message anywhere.
pub(super) async fn post(webhook: &WebhookUrl, message: &str, within: Duration) -> Result<(), PostError> {
    let answer = timeout(within, exchange(webhook, message)).await;
    let status = answer.unwrap_or(Err(PostError::TimedOut(within)))?;
    if status.is_success() { Ok(()) } else { Err(PostError::Refused(status)) }
}

async fn exchange(webhook: &WebhookUrl, message: &str) -> Result<StatusCode, PostError> {
    let stream = connect(webhook).await.map_err(PostError::Connect)?;
    let broken = |error: hyper::Error| PostError::Broken(error.into());
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // Ends with this function, however that ends.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let request = Request::post(webhook.target())
        .header(HOST, webhook.authority())
        .header(USER_AGENT, concat!("isotherm/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_TYPE, "application/json")
        .header(CONNECTION, "close")
        .body(Full::new(Bytes::copy_from_slice(message.as_bytes())))
        .map_err(|error| PostError::Broken(error.into()))?;
    Ok(sender.send_request(request).await.map_err(broken)?.status())
}

async fn connect(webhook: &WebhookUrl) -> io::Result<Stream> {
    let tcp = TcpStream::connect((webhook.host(), webhook.port())).await?;
    match webhook.scheme() {
        Scheme::Http => Ok(Stream::Plain(tcp)),
        Scheme::Https => {
            let identity = ServerIdentity::of(webhook.host());
            let identity = identity.ok_or_else(|| io::Error::other("no certificate can be for this host"))?;
            ClientTls::of_this_machine().connect(tcp, &identity).await
        }
    }
}
