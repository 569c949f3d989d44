//! CloudWatch's metrics and alarms over the router's own figures.

pub mod document;
mod error;
pub mod input;
mod metric;
mod protocol;
mod service;
mod statistic;
mod store;

pub use error::Refusal;
pub use metric::{Dimension, Metric, Unit};
pub use statistic::Statistic;
pub use store::{Limits, MetricStore, Resolution, Summary, TooManyMetrics, Window};
