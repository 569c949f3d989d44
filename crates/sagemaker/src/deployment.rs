//! Brings endpoints and inference components from what their records say to what they should be.
//!
//! A [`Reconciler`] reads records, lets a state machine think each endpoint one step further, writes that down, and then
//! acts: it orders instances from providers, ends them, and tells the fleet what to route.

mod adapters;
mod alarms;
mod clock;
mod goals;
mod hosts;
mod look;
mod ordered;
mod orders;
mod pass;
mod placing;
mod plan;
mod progress;
mod reconciler;
mod report;
mod rollout;
mod scaling;
mod state;
mod topology;
mod traffic;

pub use alarms::{AlarmSource, NoAlarms};
pub use reconciler::{Reconciler, Reconciling, Settings};
