//! Engines' own metrics are found: without them restarts show late, and full caches by their effect only.

use super::{Finding, Verdict, each, finding};
use crate::alerts::{InstanceReading, VariantReading};

const CHECK: &str = "engine metrics";

pub(super) fn check(variant: &VariantReading) -> Vec<Finding> {
    let well = |variant: &VariantReading| {
        let kinds = variant.instances.iter().filter_map(|instance| instance.engine.figures.as_ref());
        let mut kinds: Vec<&str> = kinds.map(|(figures, _)| figures.kind.as_str()).collect();
        let count = kinds.len();
        kinds.dedup();
        (count > 0).then(|| format!("read from {count} of {}: {}", variant.instances.len(), kinds.join(", ")))
    };
    each(variant, CHECK, well, of)
}

fn of(instance: &InstanceReading) -> Option<Finding> {
    // What does not answer at all is told elsewhere.
    let problem = instance.engine.problem.as_deref().filter(|_| instance.availability != "down")?;
    let fix = "SGLang needs --enable-metrics, llama.cpp --metrics, trtllm-serve return_perf_metrics; engine_metrics.path names \
               another place, engine_metrics: { enabled: false } ends the asking.";
    Some(finding(CHECK, Verdict::Warning, &instance.id, problem, fix))
}
