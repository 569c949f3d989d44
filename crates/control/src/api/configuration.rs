//! `/api/config/reload`: reads the configuration file now.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::admin::AdminState;
use crate::answer::Problem;
use crate::reload::Reload;

pub(crate) async fn reload(State(state): State<AdminState>) -> Result<Json<Value>, Problem> {
    let Some(reloader) = &state.reloader else {
        return Err(Problem::new(StatusCode::CONFLICT, "the router runs on flags alone: there is no file to read"));
    };
    match reloader.reload() {
        Reload::Applied => Ok(Json(json!({ "applied": true }))),
        Reload::Unchanged => Ok(Json(json!({ "applied": false, "reason": "the file says what is in force already" }))),
        Reload::Refused(error) => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error)),
    }
}
