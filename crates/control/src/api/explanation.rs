//! `/api/explain`: where a request would go, without sending it.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use isotherm_proxy::{Explanation, Question, explain as explanation};
use serde::Deserialize;

use crate::admin::AdminState;
use crate::answer::Problem;

/// What the request is beside its body, which is the body of the call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    path: Option<String>,
    tenant_id: Option<String>,
    /// The tenant of the key that it would be sent with; the key's name, where that names no tenant.
    tenant: Option<String>,
}

pub(crate) async fn explain(
    State(state): State<AdminState>,
    Query(asked): Query<Asked>,
    body: Bytes,
) -> Result<Json<Explanation>, Problem> {
    let question = Question {
        path: asked.path.as_deref(),
        body: &body,
        tenant_id: asked.tenant_id.as_deref(),
        tenant: asked.tenant.as_deref(),
    };
    let rules = state.rules.get();
    explanation(&state.fleet, &rules, &question).map(Json).map_err(|error| Problem::bad_request(error.to_string()))
}
