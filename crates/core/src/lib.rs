//! Routing decisions as pure functions: given a request's key, the state of a variant, the time and random numbers,
//! which instance serves it and why.
//!
//! Nothing here reads a clock, does I/O, or keeps global randomness, so that the proxy and the simulator run the very
//! same code. Nothing here sees text either: prompts arrive as bytes to hash and leave as a [`PrefixKey`].

mod adaptive;
mod already_hashed;
mod budget;
mod decision;
mod eligibility;
mod evidence;
mod index;
mod instance;
mod key;
mod placement;
mod strategy;
mod time;
mod variant;

pub use adaptive::{BLOCK_BYTES, BlockHasher, Prompt, PromptDigest};
pub use already_hashed::AlreadyHashed;
pub use budget::RetryBudget;
pub use decision::{Arm, Choice, Decision, Reason, Refusal, SpillCause};
pub use eligibility::{ModelHash, Models};
pub use evidence::{Availability, Evidence};
pub use index::BlockHash;
pub use instance::{Generation, InstanceId, InstanceSpec, Slot, Weight, WeightError};
pub use key::{HashSeed, KeyScope, PrefixDigest, PrefixHasher, PrefixKey, prefix_key};
pub use placement::Homes;
pub use strategy::{
    ConcurrencyThreshold, OutOfRange, PrefixAware, PrefixLength, Rollout, Routing, SpillRule, Strategy, StrategyName,
    UnknownStrategy,
};
pub use time::Time;
pub use variant::{InstanceView, OrderEntry, Report, RouteRequest, ScoreEntry, VariantState};
