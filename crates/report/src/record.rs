//! What is known about one request after it ended.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One request of a run. Times count from the run's start, in the engines' time: where emulated engines run faster
/// than the wall clock, whoever measures has multiplied by their speed.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestRecord {
    /// Its place in the order in which requests were sent, from 0.
    pub sequence: u64,
    /// Which user sent it.
    pub user: u32,
    /// Sent before the fleet had settled: it warms caches and keeps engines busy but enters no figure by itself.
    pub warm_up: bool,
    /// When it was sent.
    pub send: Duration,
    /// When its first token came; without streaming, the whole answer. `None` if none came.
    pub first_token: Option<Duration>,
    /// When its last byte came, or when it failed.
    pub end: Duration,
    /// Who served it, where the router says so.
    pub instance: Option<Arc<str>>,
    /// Why that one, where the router says so.
    pub reason: Option<Arc<str>>,
    /// Whom its prefix prefers, where the router says so.
    pub home: Option<Arc<str>>,
    /// Tokens of its prompt, as the engine counts them.
    pub prompt_tokens: Option<u64>,
    /// How many of these the engine found in its cache, where it says so.
    pub cached_tokens: Option<u64>,
    /// Tokens of the answer, as the engine counts them.
    pub output_tokens: Option<u64>,
    /// HTTP status, if a response began.
    pub status: Option<u16>,
    /// What went wrong; `None` for a request that was answered in full.
    pub failure: Option<Failure>,
}

impl RequestRecord {
    /// Time to first token of an answered request.
    pub fn ttft(&self) -> Option<Duration> {
        if self.failure.is_some() {
            return None;
        }
        Some(self.first_token?.saturating_sub(self.send))
    }
}

/// Why a request was not answered in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// For people: what exactly happened.
    pub detail: String,
}

/// How requests fail, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailureKind {
    /// No connection could be made.
    Connect,
    /// The connection broke before the response began.
    Disconnect,
    /// The response has a status other than 2xx.
    Status,
    /// The stream carried an error.
    ErrorEvent,
    /// The response began and broke off, or ended without the mark of its end.
    Truncated,
    /// The response is not what the API promises.
    Malformed,
    /// It took longer than the client was ready to wait.
    Timeout,
}

impl FailureKind {
    /// The word used in CSV, JSON and tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            FailureKind::Connect => "connect",
            FailureKind::Disconnect => "disconnect",
            FailureKind::Status => "status",
            FailureKind::ErrorEvent => "error_event",
            FailureKind::Truncated => "truncated",
            FailureKind::Malformed => "malformed",
            FailureKind::Timeout => "timeout",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
