//! Which model on which accelerators the engine pretends to be.

use std::time::Duration;

use thiserror::Error;

use crate::step_time::StepTimes;

/// A model on its accelerators: how long steps take, how much KV cache there is, how the scheduler is set up.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name, as in [`Profile::names`].
    pub name: String,
    /// Duration of steps by their contents.
    pub step_times: StepTimes,
    /// KV cache in tokens; the engine uses whole blocks of it.
    pub kv_capacity_tokens: u64,
    /// Tokens that one step may compute, all requests together (vLLM's `max_num_batched_tokens`).
    pub max_num_batched_tokens: u32,
    /// Requests that may run at once (vLLM's `max_num_seqs`).
    pub max_num_seqs: u32,
    /// Time from a request's submission to its place in the waiting queue, without tokenization.
    pub overhead_before: Duration,
    /// Time from the end of a step to the client's seeing its tokens. The engine's events come at the end of the step;
    /// the driver delivers them this much later.
    pub overhead_after: Duration,
    /// Time that tokenization takes per prompt token.
    pub tokenization_per_token: Duration,
}

/// No profile of this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown engine profile `{name}`; known are {}", Profile::names().join(", "))]
pub struct UnknownProfile {
    /// The name asked for.
    pub name: String,
}

impl Profile {
    /// The names of all profiles; the first is the default.
    pub fn names() -> [&'static str; 4] {
        ["llama3.1-70b-tp8-bf16", "llama3.1-70b-tp8-fp8", "llama3.1-70b-tp4-bf16", "llama3.1-8b-tp1-bf16"]
    }

    /// A built-in profile.
    pub fn named(_name: &str) -> Result<Self, UnknownProfile> {
        todo!()
    }

    /// The same with another size of KV cache, in tokens.
    pub fn with_kv_capacity_tokens(self, kv_capacity_tokens: u64) -> Self {
        Self { kv_capacity_tokens, ..self }
    }

    /// The same with another token budget per step.
    pub fn with_max_num_batched_tokens(self, max_num_batched_tokens: u32) -> Self {
        Self { max_num_batched_tokens, ..self }
    }

    /// The same with another bound on running requests.
    pub fn with_max_num_seqs(self, max_num_seqs: u32) -> Self {
        Self { max_num_seqs, ..self }
    }
}

impl Default for Profile {
    /// Llama-3.1-70B on 8×H100 in bf16.
    fn default() -> Self {
        todo!()
    }
}
