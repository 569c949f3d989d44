//! Every engine caches prefixes, by its word or by what it does.

use super::{Finding, Verdict, each, finding};
use crate::alerts::{InstanceReading, VariantReading, is_off};

const CHECK: &str = "prefix caching";

pub(super) fn check(variant: &VariantReading) -> Vec<Finding> {
    let well = |variant: &VariantReading| {
        let on = variant.instances.iter().filter(|instance| is_on(instance)).count();
        (on > 0).then(|| format!("on, as {on} of {} show", variant.instances.len()))
    };
    each(variant, CHECK, well, |instance| {
        is_off(instance).then(|| {
            let fix = "Start vLLM without --no-enable-prefix-caching, SGLang without --disable-radix-cache, TensorRT-LLM \
                       with enable_block_reuse, llama.cpp with --cache-prompt.";
            finding(CHECK, Verdict::Problem, &instance.id, "caches no prefixes: routing by prefix is in vain", fix)
        })
    })
}

fn is_on(instance: &InstanceReading) -> bool {
    let says_so = instance.engine.figures.as_ref().is_some_and(|(figures, _)| figures.prefix_caching == Some(true));
    says_so || instance.counts.cached_tokens > 0
}
