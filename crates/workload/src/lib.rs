//! What clients send: seeded plans of requests, what counting predicts for them, and the text of their prompts.
//!
//! A [`Plan`] says who sends what and when: lengths, which beginnings are shared, think times. Its [`Load`] is either
//! users in closed loop or sessions that arrive in open loop; a simulator and a load generator pull the same requests
//! from it. It holds no text, so that a simulator can run it on block chains alone; [`TextWriter`] makes the text for
//! those who need it. The same seed gives the same plan and the same text on every machine, as far as their logarithms
//! and powers agree to the last bit.
//!
//! Recorded workloads are read as streams, one record at a time, from what comes with Isotherm or from files.

mod agents;
mod arrivals;
mod azure;
mod chat_lengths;
mod chats;
mod cold_burst;
mod corpus;
mod counting;
mod dialogue;
mod documents;
mod generator;
mod hot_prefix;
mod invalid;
mod long_output;
mod mooncake;
mod no_sharing;
mod pacing;
mod pieces;
mod plan;
mod popularity;
mod recorded;
mod request;
mod seed;
mod tenants;
mod text;
mod trace;
mod words;

pub use agents::{AgentSessions, Agents};
pub use arrivals::{Arrival, Arrivals, OpenLoop};
pub use azure::Azure;
pub use chat_lengths::ChatLengths;
pub use chats::Chats;
pub use cold_burst::ColdBurst;
pub use corpus::Corpus;
pub use counting::{Counter, HitRate, Prediction};
pub use documents::Documents;
pub use generator::Session;
pub use hot_prefix::HotPrefix;
pub use invalid::InvalidWorkload;
pub use long_output::LongOutput;
pub use mooncake::Mooncake;
pub use no_sharing::NoSharing;
pub use pacing::users_for;
pub use plan::{Load, Plan, UserRequests, Workload};
pub use recorded::{Recorded, RecordedRequest};
pub use request::{Beginning, Cut, Piece, PieceId, PlannedRequest, SessionId, TenantId};
pub use tenants::Tenants;
pub use text::{CHARACTERS_PER_TOKEN, TextWriter};
pub use trace::{TraceError, TraceSource};
