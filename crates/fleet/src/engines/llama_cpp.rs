//! llama.cpp: `llamacpp:…`, there only with `--metrics`. It tells nothing of its process: counters that fall show a
//! restart.

use super::exposition::Samples;
use super::{EngineFigures, EngineKind, whole};

pub(super) fn read(samples: &Samples<'_>) -> EngineFigures {
    let count = |name: &str| samples.sum(name).and_then(whole);
    let cached = count("llamacpp:prompt_tokens_cached_total");
    let computed = count("llamacpp:prompt_tokens_total");
    let tokens = [computed, cached, count("llamacpp:tokens_predicted_total")];
    EngineFigures {
        running: count("llamacpp:requests_processing"),
        waiting: count("llamacpp:requests_deferred"),
        kv_cache_usage: samples.mean("llamacpp:kv_cache_usage_ratio"),
        // Its prompt tokens are those that it computed.
        prefix_cache_queries: computed.zip(cached).map(|(computed, cached)| computed + cached),
        prefix_cache_hits: cached,
        tokens: tokens.into_iter().flatten().reduce(|sum, more| sum + more),
        ..EngineFigures::unknown(EngineKind::LlamaCpp)
    }
}
