//! What was wrong with an instance's last probe: in words, and as what the words are made of.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// Why a probe failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Problem {
    /// In English.
    message: Arc<str>,
    #[serde(flatten)]
    kind: ProblemKind,
}

/// The same as a name and values, for whoever says it in another language.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", content = "values", rename_all = "snake_case")]
pub(crate) enum ProblemKind {
    /// Nothing listens there.
    Refused,
    /// The connection was not established in time.
    NoConnectionWithin { seconds: f64 },
    /// The connection could not be established; what the system or TLS says.
    NoConnection { cause: String },
    /// The answer did not come, or did not end, in time.
    NoAnswer { path: String, seconds: f64 },
    /// The answer broke off, was no HTTP, or was too large.
    BrokenAnswer { path: String, cause: String },
    /// The answer was no success.
    Status { path: String, status: String },
}

impl Problem {
    pub(crate) fn new(message: &impl ToString, kind: ProblemKind) -> Problem {
        Problem { message: message.to_string().into(), kind }
    }

    /// In English.
    pub fn message(&self) -> &Arc<str> {
        &self.message
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
