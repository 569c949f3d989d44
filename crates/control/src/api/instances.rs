//! `/api/instances`: the fleet as it stands, and changes of it.

use std::num::NonZeroU32;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use isotherm_config::{InstanceUrl, UrlError};
use isotherm_core::{InstanceId, Weight};
use isotherm_fleet::{ChangeError, IfLast, InstanceName, InstanceStatus, NewInstance, Origin};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::admin::AdminState;
use crate::answer::Problem;

/// The answer to a listing.
#[derive(Debug, Serialize)]
pub(crate) struct Listing {
    instances: Vec<InstanceStatus>,
}

/// Which instance is meant, where ids alone do not tell.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    endpoint: Option<String>,
    variant: Option<String>,
    /// Takes out even the last instance of a variant.
    #[serde(default)]
    force: bool,
}

/// An instance to add.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Addition {
    url: String,
    id: Option<String>,
    weight: Option<f64>,
    max_in_flight: Option<NonZeroU32>,
    endpoint: Option<String>,
    variant: Option<String>,
}

pub(crate) async fn list(State(state): State<AdminState>) -> Json<Listing> {
    Json(Listing { instances: state.fleet.list() })
}

pub(crate) async fn add(
    State(state): State<AdminState>,
    body: Bytes,
) -> Result<(StatusCode, Json<InstanceStatus>), Problem> {
    let addition: Addition =
        serde_json::from_slice(&body).map_err(|error| Problem::bad_request(format!("the body: {error}")))?;
    let url: InstanceUrl = addition.url.parse().map_err(of_url)?;
    let weight = addition.weight.map_or(Ok(Weight::ONE), Weight::new);
    let new = NewInstance {
        endpoint: addition.endpoint,
        variant: addition.variant,
        id: addition.id.as_deref().map(InstanceId::from),
        url,
        weight: weight.map_err(|error| Problem::bad_request(format!("weight: {error}")))?,
        max_in_flight: addition.max_in_flight,
        api_key: None,
        origin: Origin::Api,
    };
    Ok((StatusCode::CREATED, Json(state.fleet.add_instance(new)?)))
}

pub(crate) async fn drain(
    State(state): State<AdminState>,
    Path(id): Path<String>,
    Query(place): Query<Place>,
) -> Result<Json<InstanceStatus>, Problem> {
    Ok(Json(state.fleet.set_draining(place.of(&id), true)?))
}

pub(crate) async fn undo_drain(
    State(state): State<AdminState>,
    Path(id): Path<String>,
    Query(place): Query<Place>,
) -> Result<Json<InstanceStatus>, Problem> {
    Ok(Json(state.fleet.set_draining(place.of(&id), false)?))
}

pub(crate) async fn remove(
    State(state): State<AdminState>,
    Path(id): Path<String>,
    Query(place): Query<Place>,
) -> Result<Json<InstanceStatus>, Problem> {
    let if_last = if place.force { IfLast::Remove } else { IfLast::Keep };
    Ok(Json(state.fleet.remove_instance(place.of(&id), if_last)?))
}

fn of_url(error: UrlError) -> Problem {
    let kind = match error {
        UrlError::Scheme => "url_scheme",
        UrlError::Credentials => "url_credentials",
        UrlError::Host => "url_host",
        UrlError::Port => "url_port",
        UrlError::Path => "url_path",
    };
    Problem::bad_request(format!("url: {error}")).made_of(json!({ "kind": kind }))
}

impl Place {
    fn of<'a>(&'a self, id: &'a str) -> InstanceName<'a> {
        InstanceName { id, endpoint: self.endpoint.as_deref(), variant: self.variant.as_deref() }
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Problem {
        let status = match error {
            ChangeError::UnknownEndpoint { .. }
            | ChangeError::UnknownVariant { .. }
            | ChangeError::UnknownInstance { .. } => StatusCode::NOT_FOUND,
            ChangeError::VariantNotNamed { .. } | ChangeError::AmbiguousInstance { .. } => StatusCode::BAD_REQUEST,
            ChangeError::Duplicate { .. }
            | ChangeError::LastInstance { .. }
            | ChangeError::Managed { .. }
            | ChangeError::ManagedRouting { .. } => StatusCode::CONFLICT,
        };
        Problem::new(status, error.to_string()).made_of(&error)
    }
}
