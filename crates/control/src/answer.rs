//! The admin API's errors as JSON: what was wrong and what would be right.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// An error of the admin API.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    message: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Problem {
        Problem { status, message: message.into() }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn unauthenticated() -> Problem {
        let message = "the admin API needs the header `Authorization: Bearer TOKEN`; the token is in admin.token_file, \
                       or in the runtime directory as printed at start";
        Problem::new(StatusCode::UNAUTHORIZED, message)
    }

    pub(crate) fn misdirected(host: &str) -> Problem {
        let message = format!(
            "the admin plane is called by address, as localhost, or by a name of `admin.hosts`, not as {host:?}"
        );
        Problem::new(StatusCode::MISDIRECTED_REQUEST, message)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": { "message": self.message } }))).into_response()
    }
}
