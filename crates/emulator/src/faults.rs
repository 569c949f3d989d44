//! Faults on demand: what an emulator does wrong when a test asks it to, as `POST /emulator/faults` takes them.

use std::time::{Duration, Instant};

use http::StatusCode;
use serde::{Deserialize, Serialize};

/// All faults in force at once. The default is a well-behaved engine. A new value replaces the old one whole.
///
/// ```json
/// {"requests": {"fault": "status", "code": 503, "retry_after": 1}, "next": 3}
/// {"requests": {"fault": "die_after_tokens", "tokens": 5}}
/// {"refuse_connections": true, "for_ms": 500}
/// {"slow_factor": 10, "health": "hanging"}
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Closes the listening socket, so that new connections are refused; open connections stay. Because nothing new
    /// gets in to switch it off, give `for_ms`, keep a connection open, or use [`RunningEmulator::set_faults`].
    ///
    /// [`RunningEmulator::set_faults`]: crate::RunningEmulator::set_faults
    pub refuse_connections: bool,
    /// What generation requests (POST, beyond `/emulator`) meet.
    pub requests: Option<RequestFault>,
    /// How many requests meet it before it ends; absent: all of them.
    pub next: Option<u64>,
    /// The engine's steps take this many times longer (0.001 to 1,000,000).
    pub slow_factor: SlowFactor,
    /// What `/health` and `/ping` do.
    pub health: HealthFault,
    /// Requests find nothing in the prefix cache, as with vLLM's `--no-enable-prefix-caching`.
    pub no_prefix_caching: bool,
    /// Usage of chat and completions does not say how much was cached, as without vLLM's
    /// `--enable-prompt-tokens-details`.
    pub no_cached_tokens: bool,
    /// All faults end after this many milliseconds of wall-clock time; absent: when they are cleared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            refuse_connections: false,
            requests: None,
            next: None,
            slow_factor: SlowFactor(1.0),
            health: HealthFault::Ok,
            no_prefix_caching: false,
            no_cached_tokens: false,
            for_ms: None,
        }
    }
}

/// What goes wrong with a generation request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case", deny_unknown_fields)]
pub enum RequestFault {
    /// The request is read and never answered.
    HangBeforeHead,
    /// The response head is sent, then nothing.
    HangAfterHead,
    /// The connection (on HTTP/2 the stream) breaks after that many output tokens; 0: after the head.
    DieAfterTokens {
        /// Output tokens sent before the end.
        tokens: u32,
    },
    /// An error response at once.
    Status {
        /// 400 to 599.
        code: ErrorCode,
        /// Seconds for a `retry-after` header.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u32>,
    },
    /// A streamed request gets head 200 and an error as its first event; any other gets the status itself.
    ErrorEvent {
        /// 400 to 599, the `code` inside the event.
        code: ErrorCode,
    },
}

/// What the health paths do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthFault {
    /// 200.
    Ok,
    /// 503, as vLLM answers when its engine is dead.
    Failing,
    /// Never an answer.
    Hanging,
}

/// How many times slower the engine runs; 1 is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct SlowFactor(f64);

impl SlowFactor {
    /// The factor itself.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for SlowFactor {
    type Error = String;

    fn try_from(factor: f64) -> Result<Self, String> {
        if (0.001..=1_000_000.0).contains(&factor) {
            Ok(Self(factor))
        } else {
            Err(format!("slow_factor is {factor}, but must be 0.001 to 1000000"))
        }
    }
}

impl From<SlowFactor> for f64 {
    fn from(factor: SlowFactor) -> f64 {
        factor.0
    }
}

/// An HTTP status that means failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct ErrorCode(u16);

impl ErrorCode {
    /// The code as a status.
    pub fn status(self) -> StatusCode {
        StatusCode::from_u16(self.0).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl TryFrom<u16> for ErrorCode {
    type Error = String;

    fn try_from(code: u16) -> Result<Self, String> {
        if (400..=599).contains(&code) {
            Ok(Self(code))
        } else {
            Err(format!("code is {code}, but must be 400 to 599"))
        }
    }
}

impl From<ErrorCode> for u16 {
    fn from(code: ErrorCode) -> u16 {
        code.0
    }
}

/// The faults of a running emulator and when they end.
#[derive(Debug, Default)]
pub(crate) struct ActiveFaults {
    faults: Faults,
    until: Option<Instant>,
}

impl ActiveFaults {
    pub(crate) fn new(faults: Faults, now: Instant) -> Self {
        let until = faults.for_ms.map(|millis| now + Duration::from_millis(millis));
        Self { faults, until }
    }

    /// When the faults end by themselves.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.until
    }

    pub(crate) fn get(&self) -> &Faults {
        &self.faults
    }

    /// The fault that the request arriving now meets; counts it against `next`.
    pub(crate) fn take_for_request(&mut self) -> Option<RequestFault> {
        let fault = self.faults.requests.clone()?;
        if let Some(left) = &mut self.faults.next {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.faults.requests = None;
                self.faults.next = None;
            }
        }
        Some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_fault_from_json() {
        let faults: Faults = serde_json::from_str(
            r#"{"requests": {"fault": "status", "code": 503, "retry_after": 1}, "next": 2, "slow_factor": 10,
                "health": "hanging", "refuse_connections": true, "for_ms": 50}"#,
        )
        .unwrap();
        let code = ErrorCode::try_from(503).unwrap();
        assert_eq!(faults.requests, Some(RequestFault::Status { code, retry_after: Some(1) }));
        assert_eq!(faults.slow_factor.get(), 10.0);
        assert_eq!(faults.health, HealthFault::Hanging);
        for fault in [r#"{"fault":"hang_before_head"}"#, r#"{"fault":"die_after_tokens","tokens":3}"#] {
            serde_json::from_str::<RequestFault>(fault).unwrap();
        }
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for bad in [r#"{"slow":2}"#, r#"{"slow_factor":0}"#, r#"{"requests":{"fault":"status","code":200}}"#] {
            assert!(serde_json::from_str::<Faults>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_counted_fault_ends_after_its_requests() {
        let faults = Faults { requests: Some(RequestFault::HangBeforeHead), next: Some(2), ..Faults::default() };
        let mut active = ActiveFaults::new(faults, Instant::now());
        assert!(active.take_for_request().is_some());
        assert!(active.take_for_request().is_some());
        assert_eq!(active.take_for_request(), None);
    }
}
