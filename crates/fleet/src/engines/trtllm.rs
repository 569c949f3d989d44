//! TensorRT-LLM: `trtllm_…` of `trtllm-serve`, `nv_trt_llm_…` of Triton's backend.

use super::exposition::Samples;
use super::{EngineFigures, EngineKind, whole};

pub(super) fn read(samples: &Samples<'_>) -> EngineFigures {
    if samples.names().any(|name| name.starts_with("nv_trt_llm_")) { of_triton(samples) } else { of_serve(samples) }
}

fn of_serve(samples: &Samples<'_>) -> EngineFigures {
    let count = |name: &str| samples.sum(name).and_then(whole);
    let block_tokens = count("trtllm_kv_cache_tokens_per_block");
    let in_tokens = |blocks: u64| Some(blocks.saturating_mul(block_tokens?));
    let reused = count("trtllm_kv_cache_reused_blocks_total");
    let missed = count("trtllm_kv_cache_missed_blocks_total");
    EngineFigures {
        running: count("trtllm_num_requests_running"),
        waiting: count("trtllm_num_requests_waiting"),
        kv_cache_usage: samples.mean("trtllm_kv_cache_utilization"),
        gpu_memory_bytes: count("trtllm_gpu_memory_usage_bytes"),
        // It counts blocks, not tokens.
        prefix_cache_queries: reused.zip(missed).and_then(|(reused, missed)| in_tokens(reused + missed)),
        prefix_cache_hits: reused.and_then(in_tokens),
        tokens: count("trtllm_request_success_total"),
        block_tokens,
        cache_tokens: count("trtllm_kv_cache_max_blocks").and_then(in_tokens),
        ..EngineFigures::unknown(EngineKind::Trtllm)
    }
}

fn of_triton(samples: &Samples<'_>) -> EngineFigures {
    let requests = |kind| samples.with("nv_trt_llm_request_metrics", "request_type", kind);
    let blocks = |kind| samples.with("nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", kind);
    let scheduled = requests("scheduled");
    // Older backends tell only the active ones, which are those that wait and those that are scheduled.
    let waiting = requests("waiting").or_else(|| Some((requests("active")? - scheduled?).max(0.0)));
    let used = || Some(blocks("used")? / blocks("max").filter(|most| *most > 0.0)?);
    let block_tokens = blocks("tokens_per").and_then(whole);
    EngineFigures {
        running: scheduled.and_then(whole),
        waiting: waiting.and_then(whole),
        kv_cache_usage: blocks("fraction").or_else(used),
        gpu_memory_bytes: samples.with("nv_trt_llm_runtime_memory_metrics", "memory_type", "gpu").and_then(whole),
        block_tokens,
        cache_tokens: blocks("max")
            .and_then(whole)
            .zip(block_tokens)
            .map(|(blocks, tokens)| blocks.saturating_mul(tokens)),
        ..EngineFigures::unknown(EngineKind::Trtllm)
    }
}
