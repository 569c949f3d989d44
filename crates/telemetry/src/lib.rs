//! Every metric name, the instruments, and the access log.
//!
//! Handles on series are resolved once, when a variant or an instance comes into being; counting then takes no lock.
//! Nothing here holds prompts, keys or tokens.

mod access_log;
mod alert_metrics;
mod change;
mod counts;
mod duration_histogram;
mod exemplars;
mod exposition;
mod handles;
mod instance_metrics;
mod invocations;
mod labels;
mod metrics;
pub mod names;
pub mod otlp;
mod process;
#[cfg(test)]
mod sample;
mod series;
mod shadow_metrics;
mod spans;
mod tap;
mod traces;
mod trail;
mod variant_metrics;
mod views;

pub use access_log::{AccessLog, AccessLogEntry};
pub use alert_metrics::{AlertMetrics, Notification};
pub use change::{Change, bytes_in_equal_parts, parts_of, shared_bytes};
pub use counts::{InstanceCounts, VariantCounts};
pub use duration_histogram::HistogramFigures;
pub use exposition::Exposition;
pub use instance_metrics::InstanceMetrics;
pub use invocations::{Invocation, InvocationFigures, Invocations, LatencyFigures};
pub use labels::{
    CacheOutcome, ClientStage, InvocationFault, Outcome, RetryKind, ShadowCopy, ShedCause, StatusClass,
    UpstreamErrorKind,
};
pub use metrics::Metrics;
pub use prometheus_client::metrics::gauge::Gauge;
pub use shadow_metrics::ShadowMetrics;
pub use spans::{FinishedSpan, SpanContext, Spans};
pub use tap::{Tap, Tapped, WatchedKey, WatchedRequest};
pub use traces::{Ended, Fresh, TracedRequest, Traces};
pub use trail::{Part, PartEnd, PartKind, Published, Role, Trail};
pub use variant_metrics::VariantMetrics;
pub use views::EngineReading;
