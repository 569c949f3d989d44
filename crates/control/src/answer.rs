//! The admin API's errors as JSON: what was wrong and what would be right.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

/// An error of the admin API.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    message: String,
    /// `kind` and `values`, where whoever says it in another language is told what it is made of.
    detail: Value,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Problem {
        Problem { status, message: message.into(), detail: Value::Null }
    }

    /// The same with what its words are made of, which serialises as `kind` and, where it has some, `values`.
    pub(crate) fn made_of(self, detail: impl Serialize) -> Problem {
        Problem { detail: json!(detail), ..self }
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
        let mut error = json!({ "message": self.message });
        for name in ["kind", "values"] {
            if let Some(told) = self.detail.get(name) {
                error[name] = told.clone();
            }
        }
        (self.status, Json(json!({ "error": error }))).into_response()
    }
}
