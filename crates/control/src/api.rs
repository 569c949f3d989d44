//! The admin API, one file per resource; everything here needs the token.

mod configuration;
mod instances;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::admin::AdminState;
use crate::guard;

/// Routes below `/api`.
pub(crate) fn routes(state: &AdminState) -> Router<AdminState> {
    Router::new()
        .route("/api/instances", get(instances::list).post(instances::add))
        .route("/api/instances/{id}", axum::routing::delete(instances::remove))
        .route("/api/instances/{id}/drain", post(instances::drain).delete(instances::undo_drain))
        .route("/api/config/reload", post(configuration::reload))
        .layer(from_fn_with_state(state.token.clone(), guard::admit))
}
