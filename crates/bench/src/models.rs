//! Asks a server which model it serves.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};

use crate::Target;
use crate::connection::Connection;
use crate::run::current_thread_runtime;

/// How long the listing may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// No listing of models is longer.
const MAX_LISTING: usize = 4 * 1024 * 1024;

/// The first model of `GET /v1/models`: what to ask for when nobody named one. Blocks; must not be called inside an
/// asynchronous runtime.
///
/// # Errors
/// When there is no answer within 10 s, or no model in it.
pub fn first_model(target: &Target) -> Result<String, ModelsError> {
    let listing = async { tokio::time::timeout(TIMEOUT, list(target)).await };
    let models = current_thread_runtime()
        .map_err(|error| error.to_string())
        .and_then(|runtime| runtime.block_on(listing).unwrap_or_else(|_| Err(format!("no answer in {TIMEOUT:?}"))))
        .map_err(|detail| ModelsError::Listing { target: target.to_string(), detail })?;
    models.data.into_iter().next().map(|model| model.id).ok_or(ModelsError::None { target: target.to_string() })
}

/// Why no model was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelsError {
    #[error("cannot list the models of {target}: {detail}; name one")]
    Listing { target: String, detail: String },
    #[error("{target} lists no models; name one")]
    None { target: String },
}

#[derive(serde::Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(serde::Deserialize)]
struct Model {
    id: String,
}

async fn list(target: &Target) -> Result<Models, String> {
    let mut connection = Connection::new(Arc::new(target.clone()), TIMEOUT);
    let request = target.request("/v1/models").body(Full::<Bytes>::default()).map_err(|error| error.to_string())?;
    let mut sender = connection.take().await.map_err(|failure| failure.detail)?;
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_LISTING).collect().await.map_err(|error| error.to_string())?;
    if !status.is_success() {
        return Err(format!("it answers {status}"));
    }
    serde_json::from_slice(&body.to_bytes()).map_err(|error| format!("its listing is odd: {error}"))
}
