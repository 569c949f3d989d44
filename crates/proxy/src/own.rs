//! What the router answers itself: the union of all models, and whether it is well.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use isotherm_fleet::{Model, Topology};
use isotherm_telemetry::Outcome;
use isotherm_wire::sagemaker::RuntimeError;

use crate::call;
use crate::rescue::Failure;
use crate::route::{Route, RuntimeApi};
use crate::stage::authenticate::authorize;
use crate::stage::finish::Record;

/// The answer to a route that no instance is asked about; `None` for the others.
pub(crate) fn answer(route: &Route, record: &mut Record) -> Option<Result<Response<Bytes>, Failure>> {
    let topology = record.worker.fleet.topology();
    let answer = match route {
        Route::Runtime { endpoint, api: RuntimeApi::OpenAiModels { component } } => {
            models_of(&topology, endpoint, component.as_deref(), record).map(|models| json(list(&models)))
        }
        Route::Prompt(_) | Route::Runtime { .. } | Route::StoredResponse { .. } | Route::Extra | Route::Aws(_) => {
            return None;
        }
        Route::Health => Ok(Response::new(Bytes::new())),
        Route::Server => Ok(methods()),
        Route::Ping if topology.has_eligible(record.worker.now()) => Ok(Response::new(Bytes::new())),
        Route::Ping => Ok(unavailable()),
        Route::Models => match topology.models(|endpoint| authorize(endpoint.name(), record).is_ok()) {
            models if models.is_empty() && !topology.has_eligible(record.worker.now()) => Err(Failure::Unavailable),
            models => Ok(json(list(&models))),
        },
        Route::Model { id } => {
            let models = topology.models(|endpoint| authorize(endpoint.name(), record).is_ok());
            match models.iter().find(|model| model.id() == id) {
                Some(model) => Ok(json(model.object().to_owned())),
                None => Err(Failure::ModelNotFound(id.as_str().into())),
            }
        }
    };
    if let Ok(response) = &answer {
        record.status = Some(response.status().as_u16());
        record.bytes_out = response.body().len() as u64;
        record.end(Outcome::Ok);
    }
    Some(answer)
}

/// The models of an endpoint's instances, or of a component's copies.
fn models_of(
    topology: &Topology,
    endpoint: &str,
    component: Option<&str>,
    record: &Record,
) -> Result<Vec<Arc<Model>>, Failure> {
    let found = call::endpoint(topology, endpoint, record)?;
    match component {
        None => Ok(found.models()),
        Some(name) => match found.component(name) {
            Some(component) => Ok(component.variant.models()),
            None => Err(RuntimeError::component_not_found(name, endpoint).into()),
        },
    }
}

/// The objects as the engines wrote them: they carry more than OpenAI's own, and clients read it.
fn list(models: &[Arc<Model>]) -> String {
    let objects: Vec<&str> = models.iter().map(|model| model.object()).collect();
    format!(r#"{{"object":"list","data":[{}]}}"#, objects.join(","))
}

fn json(text: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// All methods that some path is served by.
fn methods() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
    response
}

fn unavailable() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}
