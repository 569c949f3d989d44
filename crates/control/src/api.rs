//! The admin API, one file per resource; everything here needs the token.

mod alerts;
mod checkup;
mod configuration;
mod explanation;
mod instances;
mod overview;
mod requests;
mod routing;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::admin::AdminState;
use crate::guard;
use crate::observer::Observer;

/// Requests to be explained are as large as requests are.
const LARGEST_BODY: usize = 64 << 20;

/// Routes below `/api`.
pub(crate) fn routes(state: &AdminState, observer: Observer) -> Router<AdminState> {
    let overlooked = overview::Overlooked { admin: state.clone(), observer };
    Router::new()
        .route("/api/overview", get(overview::overview))
        .route("/api/alerts", get(alerts::alerts))
        .route("/api/doctor", get(checkup::checkup))
        .with_state(overlooked)
        .route("/api/instances", get(instances::list).post(instances::add))
        .route("/api/instances/{id}", axum::routing::delete(instances::remove))
        .route("/api/instances/{id}/drain", post(instances::drain).delete(instances::undo_drain))
        .route("/api/endpoints/{endpoint}/variants/{variant}/routing", axum::routing::put(routing::change))
        .route("/api/requests", get(requests::list))
        .route("/api/requests/{id}", get(requests::show))
        .route("/api/requests.jsonl", get(requests::log))
        .route("/api/analysis", get(requests::analysis))
        .route("/api/explain", post(explanation::explain))
        .route("/api/config/reload", post(configuration::reload))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(from_fn_with_state((state.token.clone(), state.hosts.clone()), guard::admit))
}
