//! What the engine counts, in the terms of vLLM's metrics.

use std::time::Duration;

/// A snapshot of the engine's gauges and counters. Counters only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Requests that are still being tokenized or on their way to the scheduler; in no metric of vLLM's.
    pub arriving: usize,
    /// Requests in the scheduler's waiting queue (`vllm:num_requests_waiting`).
    pub waiting: usize,
    /// Requests that hold KV blocks and take part in steps (`vllm:num_requests_running`).
    pub running: usize,
    /// Blocks that a running request holds. A block that is only cached counts as free, as in vLLM.
    pub used_blocks: usize,
    /// All blocks of the KV cache.
    pub capacity_blocks: usize,

    /// Prompt tokens looked up in the prefix cache (`vllm:prefix_cache_queries_total`, in tokens). A request counts
    /// once, when it is first scheduled; a preempted request that is scheduled again does not count again.
    pub prefix_cache_queries: u64,
    /// Of these, the tokens found (`vllm:prefix_cache_hits_total`, in tokens).
    pub prefix_cache_hits: u64,
    /// Tokens that preempted requests looked up when they were scheduled again; vLLM keeps them apart and exports them
    /// nowhere.
    pub preempted_queries: u64,
    /// Of these, the tokens found.
    pub preempted_hits: u64,

    /// Prompt tokens of requests whose prompt is computed (`vllm:prompt_tokens_total`), cached ones included.
    pub prompt_tokens: u64,
    /// Tokens generated (`vllm:generation_tokens_total`).
    pub generation_tokens: u64,
    /// Times that a running request lost its blocks to another (`vllm:num_preemptions_total`).
    pub preemptions: u64,
    /// Cached blocks that were overwritten.
    pub evicted_blocks: u64,
    /// Requests that ran to their end (`vllm:request_success_total`).
    pub finished: u64,
    /// Requests aborted before their end.
    pub aborted: u64,
    /// Steps completed.
    pub steps: u64,
    /// Time spent in completed steps.
    pub busy: Duration,
}

impl Statistics {
    /// Share of the KV cache that running requests hold, 0 to 1 (`vllm:kv_cache_usage_perc`).
    pub fn kv_usage(&self) -> f64 {
        if self.capacity_blocks == 0 { 0.0 } else { self.used_blocks as f64 / self.capacity_blocks as f64 }
    }
}
