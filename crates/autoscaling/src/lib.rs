//! Application Auto Scaling: targets, target tracking and what came of them.
//!
//! [`AutoScaling`] answers the API's operations; [`Controller`] looks at the metrics of every scalable target, decides,
//! and changes capacities through [`ScalableResources`]. What it decides is worked out by pure functions in `decide`.

mod book;
mod control_plane;
mod controller;
mod decide;
mod error;
mod metrics;
mod operation;
mod record;
mod resource;
mod service;

pub use control_plane::OverControlPlane;
pub use controller::{Controller, Pace};
pub use resource::{Capacity, Owner, Resource, ScalableResources, Working};
pub use service::AutoScaling;
