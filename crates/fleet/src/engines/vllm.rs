//! vLLM: `vllm:…`, a series per data-parallel engine (vLLM, `v1/metrics/loggers.py`).

use super::exposition::Samples;
use super::{EngineFigures, EngineKind, whole};

/// What vLLM calls its cache's settings.
const CONFIG: &str = "vllm:cache_config_info";

pub(super) fn read(samples: &Samples<'_>) -> EngineFigures {
    let count = |name: &str| samples.sum(name).and_then(whole);
    let setting = |label: &str| samples.label(CONFIG, label);
    let block_tokens = setting("block_size").and_then(|size| size.parse().ok());
    let tokens = [count("vllm:prompt_tokens_total"), count("vllm:generation_tokens_total")];
    EngineFigures {
        running: count("vllm:num_requests_running"),
        waiting: count("vllm:num_requests_waiting"),
        // The older name is that of vLLM before 0.10.
        kv_cache_usage: samples.mean("vllm:kv_cache_usage_perc").or_else(|| samples.mean("vllm:gpu_cache_usage_perc")),
        prefix_cache_queries: count("vllm:prefix_cache_queries_total"),
        prefix_cache_hits: count("vllm:prefix_cache_hits_total"),
        tokens: tokens.into_iter().flatten().reduce(|sum, more| sum + more),
        // With several API servers vLLM tells nothing of its processes; a counter's birth is theirs.
        started: samples
            .sum("process_start_time_seconds")
            .or_else(|| samples.of("vllm:prefix_cache_queries_created").map(|created| created.value).next()),
        prefix_caching: setting("enable_prefix_caching").map(|setting| setting.eq_ignore_ascii_case("true")),
        block_tokens,
        cache_tokens: setting("num_gpu_blocks")
            .and_then(|blocks| blocks.parse::<u64>().ok())
            .zip(block_tokens)
            .map(|(blocks, tokens)| blocks.saturating_mul(tokens)),
        hash_algorithm: setting("prefix_caching_hash_algo").map(str::to_owned),
        ..EngineFigures::unknown(EngineKind::Vllm)
    }
}
