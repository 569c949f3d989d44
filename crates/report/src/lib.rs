//! What a measurement found: records of requests, their summary by strategy, and the forms in which people and
//! programs read it.
//!
//! A load generator or a simulator produces [`RequestRecord`]s; [`StrategySummary::of`] turns them into figures with
//! 95 % intervals; a [`Report`] sets the strategies side by side and serialises as JSON, [`comparison`] prints it as a
//! table, [`csv`] writes the requests one by one.

mod bound;
pub mod comparison;
pub mod csv;
mod interval;
pub mod measures;
mod observation;
pub mod percentile;
mod record;
mod report;
pub mod study;
mod summary;
mod table;

pub use bound::Bound;
pub use measures::latency;
pub use observation::{FleetPart, Observation, PARTS, Run};
pub use record::{Failure, FailureKind, RequestRecord};
pub use report::Report;
pub use study::Study;
pub use summary::{Change, Detail, Moment, StrategySummary};
pub use table::{Align, Table};
