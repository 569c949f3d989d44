//! One HTTP request to an instance, on a connection of its own, that ends in time.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use isotherm_fleet::{Address, InstanceTls};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Reached;

/// The largest answer that is read.
const LARGEST: usize = 64 << 10;

/// Why a call was not answered.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No connection.
    #[error("no connection: {0}")]
    Connect(#[source] std::io::Error),
    /// Nothing came in time.
    #[error("no answer within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The answer broke off, was no HTTP, or was too large.
    #[error("broken answer: {0}")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Calls an instance; a body is sent as JSON. The answer's body may be 64 KiB long.
pub async fn call(
    reached: &Reached,
    method: Method,
    path: &str,
    body: Bytes,
    limit: Duration,
) -> Result<(StatusCode, Bytes), CallError> {
    let address = Address::of(reached.url.clone());
    let whole = async {
        let tls = InstanceTls::at(&address, reached.tls.clone());
        let stream = address.dial(tls.as_ref()).await.map_err(CallError::Connect)?;
        let answer = async {
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            // Ends with this function, however that ends.
            let mut driver = JoinSet::new();
            driver.spawn(connection);
            let response = sender.send_request(request(&address, reached, method, path, body)?).await?;
            let status = response.status();
            Ok((status, Limited::new(response.into_body(), LARGEST).collect().await?.to_bytes()))
        };
        answer.await.map_err(CallError::Broken)
    };
    timeout(limit, whole).await.unwrap_or(Err(CallError::TimedOut(limit)))
}

fn request(
    address: &Address,
    reached: &Reached,
    method: Method,
    path: &str,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("{}{path}", address.base_path()))
        .header(HOST, address.authority())
        .header(CONNECTION, HeaderValue::from_static("close"));
    if !body.is_empty() {
        request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(key) = &reached.api_key {
        request = request.header(AUTHORIZATION, format!("Bearer {}", key.expose()));
    }
    request.body(Full::new(body))
}
