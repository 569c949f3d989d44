//! The router's limits and time-outs suit engines and prompts.

use std::time::Duration;

use isotherm_config::Config;
use isotherm_fleet::EngineKind;

use super::{Facts, Finding, ROUTER, Verdict, finding, ok};

const CHECK: &str = "limits";

/// A turn of 200,000 tokens is about this long, in bytes.
const LONG_TURN: u64 = 1 << 20;

/// How long uvicorn, and so vLLM and SGLang, keeps an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

pub(super) fn check(config: &Config, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if config.limits.body < LONG_TURN {
        let found = format!("request bodies above {} KiB are refused", config.limits.body >> 10);
        let fix = "A conversation of 200,000 tokens has about 1 MiB: raise limits.body.";
        findings.push(finding(CHECK, Verdict::Warning, ROUTER, found, fix));
    }
    let kinds = facts.variants.iter().flat_map(|variant| &variant.instances);
    let closes_soon = |kind| matches!(kind, EngineKind::Vllm | EngineKind::Sglang);
    let mut kinds = kinds.filter_map(|instance| Some(instance.engine.figures.as_ref()?.0.kind));
    if config.timeouts.pool_idle >= KEEP_ALIVE && kinds.any(closes_soon) {
        let found = format!("idle connections are kept for {} s", config.timeouts.pool_idle.as_secs_f64());
        let fix = "vLLM and SGLang close theirs after 5 s: keep timeouts.pool_idle below, so that no request meets one that \
                   is just being closed.";
        findings.push(finding(CHECK, Verdict::Warning, ROUTER, found, fix));
    }
    if findings.is_empty() {
        let body = config.limits.body >> 20;
        findings.push(ok(CHECK, ROUTER, format!("bodies up to {body} MiB, {} connections", config.limits.connections)));
    }
    findings
}
