//! A model of a vLLM-like engine: tokenization, block cache, scheduler, step times.
//!
//! The model is a state machine without clock, threads or I/O. Whoever drives it holds the clock: the emulator the
//! wall clock, the simulator a virtual one. Both repeat three calls:
//!
//! ```
//! use std::time::Duration;
//! use isotherm_engine_model::{CacheScope, Engine, EngineRequest, Event, Profile, RequestId, tokenizer};
//!
//! let mut engine = Engine::new(Profile::default());
//! let scope = CacheScope { model: "llama", ..CacheScope::default() };
//! let prompt: Vec<_> = tokenizer::pieces("Where is it warm?").map(|piece| piece.token).collect();
//! let output: Vec<_> = tokenizer::pieces(" Here.").map(|piece| piece.token).collect();
//! engine.submit(Duration::ZERO, EngineRequest::from_tokens(RequestId(1), &scope, &prompt, &output))?;
//!
//! let mut now = engine.next_arrival().expect("one request is on its way to the scheduler");
//! let mut events = Vec::new();
//! while let Some(end) = engine.begin_step(now) {
//!     now = end; // the emulator sleeps until then
//!     engine.end_step(&mut events);
//! }
//! assert!(matches!(events.last(), Some(Event::Finished { id: RequestId(1), .. })));
//! # Ok::<(), isotherm_engine_model::Refused>(())
//! ```
//!
//! It knows nothing of the router, so that the router's beliefs about an engine can be wrong.

pub mod block;
mod cache;
mod engine;
mod free_queue;
mod hash_index;
mod prefix_index;
mod profile;
mod request;
mod statistics;
pub mod step_time;
pub mod template;
pub mod tokenizer;

pub use block::{BLOCK_TOKENS, BlockChain, CacheScope, ChainBuilder};
pub use engine::{Engine, Event};
pub use profile::{BlockVisibility, Profile, UnknownProfile};
pub use request::{EngineRequest, Refused, RequestId};
pub use statistics::Statistics;
pub use template::ChatTemplate;
pub use tokenizer::Token;
