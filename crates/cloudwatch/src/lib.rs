//! CloudWatch's metrics and alarms over the router's own figures.
//!
//! [`MetricStore`] keeps values in memory; [`CloudWatch`] answers the API's operations over it, in any of its three
//! protocols, and keeps alarms.

mod alarm;
pub mod document;
mod error;
mod expression;
pub mod input;
mod metric;
mod operation;
mod promql;
mod protocol;
mod publisher;
mod query;
mod service;
mod statistic;
mod store;
pub mod tags;

pub use alarm::{AlarmState, CallingAlarm, Comparison, MissingData};
pub use error::Refusal;
pub use metric::{Dimension, Metric, Unit};
pub use publisher::Publisher;
pub use service::CloudWatch;
pub use statistic::Statistic;
pub use store::{Limits, MetricStore, Resolution, Summary, TooManyMetrics, Window};
