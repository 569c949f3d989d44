//! Engines report what was cached: without that nobody knows the hit rate, and ADAPTIVE learns nothing of their caches.

use isotherm_fleet::EngineKind;

use super::{Finding, Verdict, each, finding};
use crate::alerts::{InstanceReading, VariantReading};

const CHECK: &str = "cached tokens";

/// How many requests say something.
const LEAST: u64 = 10;

pub(super) fn check(variant: &VariantReading) -> Vec<Finding> {
    let well = |variant: &VariantReading| {
        let report = |instance: &&InstanceReading| instance.counts.cache_reported_prompt_tokens > 0;
        let count = variant.instances.iter().filter(report).count();
        (count > 0).then(|| format!("reported by {count} of {}", variant.instances.len()))
    };
    each(variant, CHECK, well, of)
}

fn of(instance: &InstanceReading) -> Option<Finding> {
    let counts = &instance.counts;
    if counts.requests < LEAST || counts.cache_reported_prompt_tokens > 0 {
        return None;
    }
    if counts.prompt_tokens == 0 {
        let fix = "Set inject_include_usage: true, so that the router asks for the token counts of streams and takes them out \
                   again.";
        return Some(finding(CHECK, Verdict::Warning, &instance.id, "no answer told how many tokens it took", fix));
    }
    let fix = match instance.engine.figures.as_ref().map(|(figures, _)| figures.kind) {
        Some(EngineKind::Vllm) => "Start vLLM with --enable-prompt-tokens-details.",
        Some(EngineKind::Sglang) => "Start SGLang with --enable-cache-report.",
        _ => "Start vLLM with --enable-prompt-tokens-details, SGLang with --enable-cache-report.",
    };
    Some(finding(CHECK, Verdict::Warning, &instance.id, "its answers do not say how much was cached", fix))
}
