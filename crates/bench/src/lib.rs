//! Load generator for real HTTP: drives a plan against an OpenAI-compatible URL, times every request, and compares
//! strategies.
//!
//! [`run`] sends one plan to one target; [`compare`] does so for several strategies, each on a fleet with cold caches
//! that a [`Fleet`] supplies, and reports them side by side. The client keeps one connection a user, on one thread: it
//! shares the machine with whatever it measures.

mod answer;
mod calibrate;
mod chat;
mod clock;
mod compare;
mod connection;
mod events;
mod exchange;
mod models;
mod options;
mod progress;
mod run;
mod target;
mod validity;

pub use calibrate::calibrate;
pub use compare::{Arm, CompareError, Comparison, Fleet, compare};
pub use models::{ModelsError, first_model};
pub use options::Options;
pub use progress::{Bar, Progress};
pub use run::{Run, RunError, run};
pub use target::{InvalidTarget, Target};
pub use validity::Lag;
