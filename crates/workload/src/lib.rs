//! What clients send: seeded plans of requests, what counting predicts for them, and the text of their prompts.
//!
//! A [`Plan`] says who sends what and when: lengths, which beginnings are shared, think times. It holds no text, so
//! that a simulator can run it on block chains alone; [`TextWriter`] makes the text for those who need it. The same
//! seed gives the same plan and the same text on every machine.

mod counting;
mod documents;
mod no_sharing;
mod pacing;
mod plan;
mod seed;
mod text;
mod words;

pub use counting::{Counter, HitRate, Prediction};
pub use documents::Documents;
pub use no_sharing::NoSharing;
pub use pacing::users_for;
pub use plan::{InvalidWorkload, Piece, PieceId, Plan, PlannedRequest, UserRequests, Workload};
pub use text::{CHARACTERS_PER_TOKEN, TextWriter};
