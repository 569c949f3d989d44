//! Load generator for real HTTP: drives a plan against an OpenAI-compatible URL, times every request, and compares
//! strategies.
//!
//! [`run`] sends so many requests of a plan to one target; [`compare`] does so for several strategies, each on a fleet
//! with cold caches that a [`Fleet`] supplies, and reports them side by side. [`replay`] follows a plan by its times, in
//! open or closed loop, with conversations in which the engine's own answers come back; [`repeat`] does so for several
//! strategies with several seeds in turn. The client works on one thread: it shares the machine with whatever it
//! measures.

mod answer;
mod calibrate;
mod chat;
mod clock;
mod compare;
mod connection;
mod conversation;
mod events;
mod exchange;
mod models;
mod options;
mod progress;
mod record;
mod repeat;
mod replay;
mod run;
mod target;
mod validity;
mod work;

pub use calibrate::calibrate;
pub use compare::{Arm, CompareError, Comparison, Fleet, compare};
pub use models::{ModelsError, first_model};
pub use options::Options;
pub use progress::{Bar, Progress};
pub use repeat::{Repeated, Repeats, repeat};
pub use replay::{Replay, Timetable, replay};
pub use run::{Run, RunError, run};
pub use target::{InvalidTarget, Target};
pub use validity::Lag;
pub use work::Work;
