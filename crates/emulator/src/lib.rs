//! The engine model behind HTTP, in wall-clock time: to its clients it is a vLLM server.
//!
//! [`start`] runs an emulator on a thread of its own. It speaks OpenAI's and Anthropic's APIs, SageMaker's container
//! paths and vLLM's metrics, and takes as long over a request as the model of `isotherm-engine-model` says, divided by
//! [`EmulatorConfig::speed`]. `POST /emulator/faults` makes it misbehave on
//! demand ([`Faults`]); `GET /emulator/requests` shows what it was sent; [`RunningEmulator::lag`] tells whether the
//! machine was fast enough for the emulation to be true.
//!
//! The way of a request: `listener` → `respond` (→ `route`) → a file of `api` → `emulator` → `driver`, which drives
//! the engine; back through `event_stream` or a whole `reply`.

mod answer;
mod api;
mod call;
mod clock;
mod config;
mod content;
mod conversation;
mod driver;
mod emulator;
mod event_stream;
mod failure;
mod faults;
mod fields;
mod generation;
mod histogram;
mod json;
mod lag;
mod listener;
mod meters;
mod metrics;
mod observed;
mod port;
mod reply;
mod respond;
mod response_store;
mod route;
mod run;
mod sessions;
mod start;
mod tasks;
mod timer;
mod tools;
mod usage;
mod vocabulary;

pub use config::{ApiKey, EmulatorConfig, InvalidConfig};
pub use faults::{ErrorCode, Faults, HealthFault, RequestFault, SlowFactor};
pub use isotherm_engine_model::{Profile, Statistics};
pub use lag::LagReport;
pub use start::{RunningEmulator, StartError, start};
