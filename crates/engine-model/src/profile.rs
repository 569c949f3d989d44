//! Which model on which accelerators the engine pretends to be.

use std::time::Duration;

use thiserror::Error;

use crate::step_time::{MEASURED, StepTimes, StepWork};

/// A model on its accelerators: how long steps take, how much KV cache there is, how the scheduler is set up.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Its name, as in [`Profile::names`].
    pub name: String,
    /// How many accelerators one instance has.
    pub accelerators: u32,
    /// Duration of forward passes by their contents.
    pub step_times: StepTimes,
    /// Time between two forward passes that the accelerator stands still: scheduling, sampling, launches.
    pub step_overhead: Duration,
    /// KV cache in tokens; the engine uses whole blocks of it.
    pub kv_capacity_tokens: u64,
    /// Tokens that one step may compute, all requests together (vLLM's `max_num_batched_tokens`); 0 counts as 1.
    pub max_num_batched_tokens: u32,
    /// Requests that may run at once (vLLM's `max_num_seqs`); 0 counts as 1.
    pub max_num_seqs: u32,
    /// Time from a request's submission to its place in the waiting queue, without tokenization.
    pub overhead_before: Duration,
    /// Time from the end of a step to the client's seeing its tokens. The engine's events come at the end of the step;
    /// the driver delivers them this much later.
    pub overhead_after: Duration,
    /// Time that tokenization takes per prompt token.
    pub tokenization_per_token: Duration,
    /// When computed blocks can be found by other requests.
    pub block_visibility: BlockVisibility,
}

/// When the full blocks that a step computes become hits for other requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockVisibility {
    /// When the step has ended; the built-in profiles have this. Two requests with the same uncached beginning that are
    /// admitted in one step both compute it, and both copies stay.
    AfterStep,
    /// When the step is planned, before anything is computed: a request admitted in the same step behind another
    /// shares its blocks at once, as in vLLM's `KVCacheManager.allocate_slots`. (The keys and values of a layer are
    /// written for the whole batch before it attends.)
    WhenScheduled,
}

/// No profile of this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown engine profile `{name}`; known are {}", Profile::names().collect::<Vec<_>>().join(", "))]
pub struct UnknownProfile {
    /// The name asked for.
    pub name: String,
}

/// Names of the built-in profiles, their accelerators, and their KV cache in tokens; the default first.
///
/// The capacity is what is left of 0.9 × 85.0 GB per H100 (vLLM's `gpu_memory_utilization`) after the weights and
/// 2.4 GB for activations and graphs, over the bytes of one token's keys and values: 327,680 for 70B, 131,072 for 8B.
/// 70B in bf16 on eight comes to 1.38 million, inside the 1.37 to 1.41 million that such servers report.
const BUILT_IN: [(&str, u32, u64); 4] = [
    ("llama3.1-70b-tp8-bf16", 8, 1_380_000),
    ("llama3.1-70b-tp8-fp8", 8, 1_595_200),
    ("llama3.1-70b-tp4-bf16", 4, 473_600),
    ("llama3.1-8b-tp1-bf16", 1, 442_800),
];

impl Profile {
    /// The names of all built-in profiles; the first is the default.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|&(name, ..)| name)
    }

    /// A built-in profile.
    pub fn named(name: &str) -> Result<Self, UnknownProfile> {
        let built_in = BUILT_IN.iter().find(|(built_in, ..)| *built_in == name);
        let tables = MEASURED.get(name);
        let (Some(&(name, accelerators, kv_capacity_tokens)), Some(tables)) = (built_in, tables) else {
            return Err(UnknownProfile { name: name.to_owned() });
        };
        Ok(Self {
            name: name.to_owned(),
            accelerators,
            step_times: tables.step_times(),
            step_overhead: Duration::from_millis(2),
            kv_capacity_tokens,
            // vLLM's defaults for its server on accelerators of 70 GiB and more.
            max_num_batched_tokens: 8_192,
            max_num_seqs: 1_024,
            // A request's fixed cost of 30 ms around the steps, 70 % of it before.
            overhead_before: Duration::from_millis(21),
            overhead_after: Duration::from_millis(9),
            tokenization_per_token: Duration::from_micros(1),
            block_visibility: BlockVisibility::AfterStep,
        })
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

    /// The same with another moment at which computed blocks become hits.
    pub fn with_block_visibility(self, block_visibility: BlockVisibility) -> Self {
        Self { block_visibility, ..self }
    }

    /// The same on accelerators whose forward passes take `factor` times as long. `factor` is above 0; overheads of the
    /// host stay.
    pub fn scaled(self, factor: f64) -> Self {
        Self { step_times: self.step_times.scaled(factor), ..self }
    }

    /// How long a step takes from its planning to its tokens.
    pub fn step_duration(&self, work: &StepWork) -> Duration {
        self.step_times.forward_pass(work) + self.step_overhead
    }

    /// Time from a request's submission to its place in the waiting queue.
    pub fn arrival_delay(&self, prompt_tokens: u32) -> Duration {
        self.overhead_before + self.tokenization_per_token * prompt_tokens
    }
}

impl Default for Profile {
    /// Llama-3.1-70B on 8×H100 in bf16.
    fn default() -> Self {
        Self::named(BUILT_IN[0].0).expect("the default profile has its table")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_profile() {
        for name in Profile::names() {
            assert_eq!(Profile::named(name).map(|profile| profile.name), Ok(name.to_owned()));
        }
        assert_eq!(Profile::names().next(), Some(Profile::default().name.as_str()));
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let error = Profile::named("llama2").unwrap_err().to_string();
        assert!(error.starts_with("unknown engine profile `llama2`; known are llama3.1-70b-tp8-bf16, "), "{error}");
        assert!(error.ends_with("llama3.1-8b-tp1-bf16"), "{error}");
    }

    #[test]
    fn capacities_follow_from_the_memory_of_the_accelerators() {
        let capacity =
            |accelerators: f64, weights: f64, token: f64| (accelerators * (0.9 * 85.0e9 - 2.4e9) - weights) / token;
        let expected = [
            capacity(8.0, 141.1e9, 327_680.0),
            capacity(8.0, 70.6e9, 327_680.0),
            capacity(4.0, 141.1e9, 327_680.0),
            capacity(1.0, 16.06e9, 131_072.0),
        ];
        for (name, expected) in Profile::names().zip(expected) {
            let tokens = Profile::named(name).unwrap().kv_capacity_tokens as f64;
            assert!((tokens / expected - 1.0).abs() < 0.005, "{name}: {tokens} {expected}");
        }
    }

    #[test]
    fn the_host_adds_2_ms_to_every_step_on_any_accelerator() {
        let work = StepWork { tokens: 512, ..StepWork::default() };
        for profile in [Profile::default(), Profile::default().scaled(3.0)] {
            assert_eq!(profile.step_duration(&work), profile.step_times.forward_pass(&work) + Duration::from_millis(2));
        }
    }

    #[test]
    fn a_prompt_of_8000_tokens_takes_29_ms_to_reach_the_scheduler() {
        assert_eq!(Profile::default().arrival_delay(8_000), Duration::from_millis(29));
    }
}
