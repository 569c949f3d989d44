//! Labels of series, and the closed sets of words that some of them take.

use std::sync::Arc;

use isotherm_core::Reason;
use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};

/// The label that names an instance. Not `instance`: so a Prometheus server calls what it scraped, the router, and would
/// rename ours.
pub(crate) const INSTANCE: &str = "instance_id";

/// The labels of one series, in the order in which they are written; those that say whom it belongs to come first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Labels(Vec<(&'static str, Arc<str>)>);

impl Labels {
    /// These labels and one more.
    pub(crate) fn with(&self, label: &'static str, value: impl Into<Arc<str>>) -> Labels {
        let mut labels = self.0.clone();
        labels.push((label, value.into()));
        Labels(labels)
    }

    /// Whether these labels are those of `scope`, and perhaps further ones.
    pub(crate) fn are_within(&self, scope: &Labels) -> bool {
        self.0.starts_with(&scope.0)
    }
}

impl EncodeLabelSet for Labels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.encode(encoder)
    }
}

/// Makes an enum whose values are words in metrics and logs.
macro_rules! words {
    ($(#[$of_enum:meta])* $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$of_enum])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$of_variant])* $variant,)*
        }

        impl $name {
            /// Every value.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// The word in metrics and logs.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

words! {
    /// The class of a status code.
    StatusClass {
        /// 1xx.
        Informational = "1xx",
        /// 2xx.
        Success = "2xx",
        /// 3xx.
        Redirection = "3xx",
        /// 4xx.
        ClientError = "4xx",
        /// 5xx, and whatever is no status.
        ServerError = "5xx",
    }
}

impl StatusClass {
    /// The class of a status code.
    pub const fn of(status: u16) -> StatusClass {
        match status / 100 {
            1 => StatusClass::Informational,
            2 => StatusClass::Success,
            3 => StatusClass::Redirection,
            4 => StatusClass::ClientError,
            _ => StatusClass::ServerError,
        }
    }
}

words! {
    /// Why a request was tried again.
    RetryKind {
        /// The connection could not be made: the next in order, which is no resend.
        Connect = "connect",
        /// A reused connection broke before any byte of a response: a fresh one to the same instance.
        ReusedConnection = "reused_connection",
        /// Sent whole and failed before the first byte of the body: the next in order, out of the budget.
        Resend = "resend",
    }
}

words! {
    /// How far a request was when its client left.
    ClientStage {
        /// Its body was still coming.
        Upload = "upload",
        /// It waited for an instance.
        Queue = "queue",
        /// It was sent to an instance, which had not answered yet.
        Prefill = "prefill",
        /// Its response was under way.
        Response = "response",
    }
}

words! {
    /// Why a request was shed.
    ShedCause {
        /// As many requests waited as may wait.
        QueueFull = "queue_full",
        /// It waited as long as a request may wait.
        QueueTimeout = "queue_timeout",
        /// Its own deadline passed while it waited.
        Deadline = "deadline",
    }
}

words! {
    /// What went wrong between router and instance.
    UpstreamErrorKind {
        /// The connection was refused.
        ConnectRefused = "connect_refused",
        /// No connection within the time-out.
        ConnectTimeout = "connect_timeout",
        /// The connection failed otherwise (name, route).
        ConnectFailed = "connect_failed",
        /// The connection broke before the first byte of the response's body.
        Broken = "broken",
        /// The connection broke within the response's body.
        Truncated = "truncated",
        /// No first byte within the time-out.
        FirstByteTimeout = "first_byte_timeout",
        /// No further byte within the time-out.
        IdleTimeout = "idle_timeout",
        /// The request took longer than it may in all.
        TotalTimeout = "total_timeout",
        /// Status 429.
        TooManyRequests = "status_429",
        /// Status 5xx.
        ServerError = "status_5xx",
        /// A stream whose first event is an error.
        ErrorEvent = "error_event",
        /// Bytes that are no HTTP response.
        Malformed = "malformed",
    }
}

words! {
    /// What the prefix cache was worth to a request, as far as its engine says.
    CacheOutcome {
        /// At its home or wherever its strategy wanted it, with half of its prompt or more from the cache.
        Hit = "hit",
        /// There, with less than half from the cache.
        Miss = "miss",
        /// Sent elsewhere because its home was full, whatever was cached there.
        Spill = "spill",
        /// The engine does not say how much was cached.
        Unknown = "unknown",
    }
}

impl CacheOutcome {
    /// The outcome of a request that was placed for this reason, by its tokens and how many of them were cached.
    pub fn of(reason: Reason, cached_of_prompt: Option<(u64, u64)>) -> CacheOutcome {
        match cached_of_prompt {
            _ if matches!(reason, Reason::Spill | Reason::Saturated) => CacheOutcome::Spill,
            Some((prompt, cached)) if cached * 2 >= prompt && cached > 0 => CacheOutcome::Hit,
            Some(_) => CacheOutcome::Miss,
            None => CacheOutcome::Unknown,
        }
    }
}

words! {
    /// What went wrong with an invocation on SageMaker's paths, by what SageMaker counts.
    InvocationFault {
        /// The container answered with an error, or not at all.
        ModelError = "model_error",
        /// The container's stream broke off after it had begun.
        MidStream = "mid_stream",
        /// The inference component has no copy.
        NoCapacity = "no_capacity",
    }
}

words! {
    /// What became of a request's copy for the shadow variant.
    ShadowCopy {
        /// It was sent.
        Sent = "sent",
        /// As many were under way as may be, or no instance could take it.
        Dropped = "dropped",
    }
}

words! {
    /// What became of a message about alerts.
    Notification {
        /// The webhook took it.
        Sent = "sent",
        /// It did not, in any attempt.
        Failed = "failed",
        /// As many waited as may wait.
        Dropped = "dropped",
    }
}

words! {
    /// How a request ended.
    Outcome {
        /// The response went through whole, whatever its status.
        Ok = "ok",
        /// The router refused the request as it was: 400, 404, 405, 413, 414, 431.
        Refused = "refused",
        /// No key, or an unknown one.
        Unauthorized = "unauthorized",
        /// As many requests waited as may wait.
        QueueFull = "queue_full",
        /// It waited as long as a request may wait.
        QueueTimeout = "queue_timeout",
        /// Its own deadline passed.
        Deadline = "deadline",
        /// No instance could take it.
        Unavailable = "unavailable",
        /// The instance failed before the first byte.
        UpstreamError = "upstream_error",
        /// The instance took too long.
        UpstreamTimeout = "upstream_timeout",
        /// The instance failed within the response.
        Truncated = "truncated",
        /// The client left.
        ClientLeft = "client_left",
        /// The router itself failed.
        InternalError = "internal_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_holds_what_begins_with_it() {
        let scope = Labels::default().with("endpoint", "chat").with("variant", "a");
        assert!(scope.with("reason", "home").are_within(&scope) && scope.are_within(&scope));
        let other = Labels::default().with("endpoint", "chat").with("variant", "ab");
        assert!(!other.are_within(&scope) && !Labels::default().are_within(&scope));
    }

    #[test]
    fn half_a_prompt_from_the_cache_is_a_hit_unless_it_spilled() {
        let of = |reason, cached| CacheOutcome::of(reason, cached).as_str();
        assert_eq!(of(Reason::Home, Some((100, 50))), "hit");
        assert_eq!(of(Reason::Home, Some((100, 49))), "miss");
        assert_eq!(of(Reason::Home, Some((0, 0))), "miss");
        assert_eq!(of(Reason::Random, None), "unknown");
        assert_eq!(of(Reason::Spill, Some((100, 100))), "spill");
    }

    #[test]
    fn every_status_has_a_class() {
        for (status, class) in [(200, "2xx"), (101, "1xx"), (304, "3xx"), (499, "4xx"), (503, "5xx"), (999, "5xx")] {
            assert_eq!(StatusClass::of(status).as_str(), class);
        }
    }
}
