//! One question to an instance, on a connection of its own, that ends in time.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, DATE, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use isotherm_tls::{Stream, Validity};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::Instance;

/// How long a connection may take.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The largest head of an answer, in bytes.
const LARGEST_HEAD: usize = 64 << 10;

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GetError {
    /// Nothing listens there.
    #[error("connection refused")]
    Refused,
    /// The connection was not established in time.
    #[error("no connection within {} s", CONNECT_TIMEOUT.as_secs())]
    ConnectTimedOut,
    /// The connection could not be established, or its host's name could not be resolved.
    #[error("no connection: {0}")]
    Connect(#[source] io::Error),
    /// The answer did not come, or did not end, in time.
    #[error("no answer to GET {path} within {} s", limit.as_secs_f64())]
    TimedOut {
        /// What was asked for.
        path: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The answer broke off, was no HTTP, or was too large.
    #[error("broken answer to GET {path}: {cause}")]
    Broken {
        /// What was asked for.
        path: String,
        /// What was wrong.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The status of the answer to a GET; its body is not read.
pub(crate) async fn status(instance: &Instance, path: &str, limit: Duration) -> Result<StatusCode, GetError> {
    exchange(instance, path, None, limit, async |response| Ok(response.status())).await
}

/// The status and the body of the answer to a GET; a body of more than `largest` bytes is an error.
pub(crate) async fn body(
    instance: &Instance,
    path: &str,
    limit: Duration,
    largest: usize,
) -> Result<(StatusCode, Bytes), GetError> {
    exchange(instance, path, None, limit, async |response| {
        let status = response.status();
        Ok((status, Limited::new(response.into_body(), largest).collect().await?.to_bytes()))
    })
    .await
}

/// As [`body`], with what the instance's clock says (RFC 9110, section 6.6.1).
pub(crate) async fn page(
    instance: &Instance,
    path: &str,
    limit: Duration,
    largest: usize,
) -> Result<(StatusCode, Option<HeaderValue>, Bytes), GetError> {
    exchange(instance, path, None, limit, async |response| {
        let (status, date) = (response.status(), response.headers().get(DATE).cloned());
        Ok((status, date, Limited::new(response.into_body(), largest).collect().await?.to_bytes()))
    })
    .await
}

/// The status and the body of the answer to a POST of JSON.
pub(crate) async fn answer(
    instance: &Instance,
    path: &str,
    question: Bytes,
    limit: Duration,
    largest: usize,
) -> Result<(StatusCode, Bytes), GetError> {
    exchange(instance, path, Some(question), limit, async |response| {
        let status = response.status();
        Ok((status, Limited::new(response.into_body(), largest).collect().await?.to_bytes()))
    })
    .await
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

async fn exchange<T>(
    instance: &Instance,
    path: &str,
    question: Option<Bytes>,
    limit: Duration,
    read: impl AsyncFnOnce(Response<Incoming>) -> Result<T, BoxError>,
) -> Result<T, GetError> {
    let whole = async {
        let stream = connect(instance).await?;
        let answer = async {
            let mut http = http1::Builder::new();
            let (mut sender, connection) = http.max_buf_size(LARGEST_HEAD).handshake(TokioIo::new(stream)).await?;
            // Ends with this function, however that ends.
            let mut driver = JoinSet::new();
            driver.spawn(connection);
            read(sender.send_request(request(instance, path, question)?).await?).await
        };
        answer.await.map_err(|cause| GetError::Broken { path: path.to_owned(), cause })
    };
    timeout(limit, whole).await.unwrap_or_else(|_| Err(GetError::TimedOut { path: path.to_owned(), limit }))
}

async fn connect(instance: &Instance) -> Result<Stream, GetError> {
    let tls = instance.tls();
    match timeout(CONNECT_TIMEOUT, instance.address().dial(tls.as_deref())).await {
        Ok(Ok(stream)) => {
            instance.note_certificate(stream.peer_validity());
            Ok(stream)
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Err(GetError::Refused),
        Ok(Err(error)) => {
            instance.note_certificate(Validity::of_refused(&error));
            Err(GetError::Connect(error))
        }
        Err(_) => Err(GetError::ConnectTimedOut),
    }
}

fn request(instance: &Instance, path: &str, question: Option<Bytes>) -> Result<Request<Full<Bytes>>, http::Error> {
    let address = instance.address();
    let method = if question.is_some() { Method::POST } else { Method::GET };
    let mut request = Request::builder()
        .method(method)
        .uri(format!("{}{path}", address.base_path()))
        .header(HOST, address.authority())
        .header(USER_AGENT, HeaderValue::from_static(concat!("isotherm/", env!("CARGO_PKG_VERSION"))))
        .header(ACCEPT, HeaderValue::from_static("*/*"))
        .header(CONNECTION, HeaderValue::from_static("close"));
    if let Some(authorization) = instance.authorization() {
        request = request.header(AUTHORIZATION, authorization);
    }
    if question.is_some() {
        request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    request.body(Full::new(question.unwrap_or_default()))
}
