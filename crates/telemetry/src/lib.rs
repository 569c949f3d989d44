//! Every metric name, the instruments, and the access log.
//!
//! Handles on series are resolved once, when a variant or an instance comes into being; counting then takes no lock.
//! Nothing here holds prompts, keys or tokens.

mod access_log;
mod counts;
mod duration_histogram;
mod exposition;
mod handles;
mod instance_metrics;
mod invocations;
mod labels;
mod metrics;
pub mod names;
mod process;
#[cfg(test)]
mod sample;
mod series;
mod tap;
mod variant_metrics;

pub use access_log::{AccessLog, AccessLogEntry};
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
pub use tap::{Tap, Tapped, WatchedKey, WatchedRequest};
pub use variant_metrics::VariantMetrics;
