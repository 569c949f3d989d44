//! One measurement: the load generator for a second or two, and what the processes used meanwhile.

use std::path::Path;

use serde_json::Value;

use super::plan::{Case, Plan};
use super::process::{Engines, Process};
use crate::failure::Failure;
use crate::machine;

/// What one measurement of one subject found. Times in microseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    pub(crate) first_byte_p50: f64,
    pub(crate) first_byte_p99: f64,
    pub(crate) per_second: f64,
    pub(crate) failed: u64,
    pub(crate) failure: Option<String>,
    pub(crate) reconnects: u64,
    /// Processor time of the router for one request; 0 for direct.
    pub(crate) cpu_us: f64,
    /// Cores that the load generator used.
    pub(crate) load_cores: f64,
    /// Cores that the engines used.
    pub(crate) engine_cores: f64,
}

/// Measures one case with one subject.
pub(crate) fn once(
    program: &Path,
    authority: &str,
    router: Option<&Process>,
    engines: &Engines,
    case: Case,
    plan: &Plan,
) -> Result<Sample, Failure> {
    let seconds = plan.seconds_of(case);
    let used = || (router.map_or(0.0, Process::cpu_seconds), engines.cpu_seconds());
    let (router_before, engines_before) = used();
    let told = machine::output(machine::command(program).args(["load", authority]).args([
        case.connections.to_string(),
        seconds.to_string(),
        case.prompt_bytes.to_string(),
        case.tokens.to_string(),
    ]))?;
    let (router_after, engines_after) = used();
    let told: Value = serde_json::from_str(&told)
        .map_err(|error| Failure::Failed(format!("the load generator printed no JSON: {error}\n{told}")))?;
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let sent = number(&told["sent"]);
    Ok(Sample {
        first_byte_p50: number(&told["first_byte_us"]["p50"]),
        first_byte_p99: number(&told["first_byte_us"]["p99"]),
        per_second: number(&told["per_second"]),
        failed: told["failed"].as_u64().unwrap_or_default(),
        failure: told["failure"].as_str().map(str::to_owned),
        reconnects: told["reconnects"].as_u64().unwrap_or_default(),
        cpu_us: (router_after - router_before) * 1e6 / sent,
        load_cores: number(&told["cpu_seconds"]) / seconds,
        engine_cores: (engines_after - engines_before) / seconds,
    })
}
