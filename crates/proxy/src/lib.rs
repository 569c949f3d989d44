//! The data plane: takes requests of OpenAI's, Anthropic's and SageMaker's clients, chooses an instance for each, and
//! passes bytes both ways unchanged.
//!
//! `pipeline` is the way of a request; each stage of it is a file in `stage`. Every core has one thread with a runtime
//! of its own; connections, clients' and instances', stay on the thread that opened them.

mod alarm;
mod answer;
mod asynchronous;
mod aws;
mod call;
mod connection;
mod data_plane;
mod explain;
mod headers;
mod leftover;
mod listener;
mod own;
mod pipeline;
mod prompt;
mod rescue;
mod route;
mod runtime;
mod settings;
mod stage;
mod stop;
mod upload;
mod upstream;
mod watch;
mod worker;

pub use data_plane::{DataPlane, Drained, RulesHandle};
pub use explain::{ExplainError, Explanation, Place, Prefix, Question, Unit, explain};
pub use settings::{Rules, Settings};
