//! A fleet in virtual time: what a routing strategy would do to a fleet and its traffic.
//!
//! A [`Scenario`] says which fleet, which workload and which strategies; [`simulate`] runs one strategy with one seed,
//! on the very routing code that serves and on the engine model. The same seed gives the same run on every machine.

mod bound;
mod chains;
mod compare;
mod figure;
mod prompt;
mod queue;
mod router;
mod scenario;
mod server;
mod simulation;
mod size;
mod strategy;
#[cfg(test)]
mod tests;
mod traffic;
mod tune;

pub use compare::compare;
pub use figure::{Figure, Point, UnknownFigure};
pub use scenario::{Fleet, FleetChange, Group, InvalidScenario, Scenario, Shipped, Slo, TimedChange, shipped};
pub use simulation::{Outcome, Watch, simulate};
pub use size::{Goal, Sized, UnknownGoal, size_for};
pub use strategy::{Rule, UnknownRule};
pub use tune::{Tuned, tune};
