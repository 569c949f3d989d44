//! SGLang: `sglang:…`, a series per rank; there only with `--enable-metrics`.

use std::collections::BTreeMap;

use super::exposition::Samples;
use super::{EngineFigures, EngineKind, whole};

/// What SGLang calls its cache's settings.
const CONFIG: &str = "sglang:cache_config_info";

pub(super) fn read(samples: &Samples<'_>) -> EngineFigures {
    let count = |name: &str| samples.sum(name).and_then(whole);
    let setting = |label: &str| samples.label(CONFIG, label).and_then(|value| value.parse::<u64>().ok());
    let tokens = [count("sglang:prompt_tokens_total"), count("sglang:generation_tokens_total")];
    let usage = of_replicas(samples, "sglang:token_usage");
    EngineFigures {
        running: whole_sum(&of_replicas(samples, "sglang:num_running_reqs")),
        waiting: whole_sum(&of_replicas(samples, "sglang:num_queue_reqs")),
        kv_cache_usage: (!usage.is_empty()).then(|| usage.iter().sum::<f64>() / usage.len() as f64),
        prefix_cache_queries: count("sglang:prompt_tokens_total"),
        prefix_cache_hits: count("sglang:cached_tokens_total"),
        tokens: tokens.into_iter().flatten().reduce(|sum, more| sum + more),
        block_tokens: setting("page_size"),
        cache_tokens: setting("num_pages")
            .zip(setting("page_size"))
            .map(|(pages, tokens)| pages.saturating_mul(tokens)),
        ..EngineFigures::unknown(EngineKind::Sglang)
    }
}

/// A gauge's value for each data-parallel replica: its tensor- and pipeline-parallel ranks all tell the same, and with
/// priorities there is a series for each beside the one for all.
fn of_replicas(samples: &Samples<'_>, name: &str) -> Vec<f64> {
    let mut replicas: BTreeMap<&str, f64> = BTreeMap::new();
    for sample in samples.of(name).filter(|sample| sample.label("priority").unwrap_or_default().is_empty()) {
        let value = replicas.entry(sample.label("dp_rank").unwrap_or_default()).or_default();
        *value = value.max(sample.value);
    }
    replicas.into_values().collect()
}

fn whole_sum(values: &[f64]) -> Option<u64> {
    (!values.is_empty()).then(|| values.iter().sum()).and_then(whole)
}
