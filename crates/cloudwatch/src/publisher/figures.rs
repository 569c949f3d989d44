//! Which metrics come of the counts.
//!
//! Names, units and meanings are those of "Amazon SageMaker AI metrics in Amazon CloudWatch"; where SageMaker sends a 0
//! or a 1 per request, so that the average is a rate, so is it here.

use isotherm_fleet::Machine;
use isotherm_telemetry::{InvocationFigures, LatencyFigures};

use super::reading::{Kind, Reading};
use crate::{Summary, Unit};

/// SageMaker's namespace.
const SAGEMAKER: &str = "AWS/SageMaker";

/// That of the router's own.
const ISOTHERM: &str = "Isotherm";

/// Those of the machines' use: SageMaker's names for the log groups, too.
const OF_ENDPOINTS: &str = "/aws/sagemaker/Endpoints";
const OF_COMPONENTS: &str = "/aws/sagemaker/InferenceComponents";

/// Values of one metric.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) values: Summary,
}

/// What was added in a place, as metrics: those without values are not there.
pub(super) fn of(reading: &Reading, added: &InvocationFigures, concurrency: Option<Summary>) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut put = |namespace, name, unit, values: Option<Summary>| {
        figures.extend(values.map(|values| Figure { namespace, name, unit, values }));
    };
    let requests = added.requests;
    let share = |part: u64| of_requests(requests, part);
    put(SAGEMAKER, "Invocations", Unit::Count, times(1.0, requests));
    put(SAGEMAKER, "Invocation4XXErrors", Unit::Count, share(added.client_errors));
    put(SAGEMAKER, "Invocation5XXErrors", Unit::Count, share(added.server_errors));
    put(SAGEMAKER, "InvocationModelErrors", Unit::Count, share(added.model_errors));
    put(SAGEMAKER, "ModelLatency", Unit::Microseconds, microseconds(&added.model));
    put(SAGEMAKER, "OverheadLatency", Unit::Microseconds, microseconds(&added.overhead));
    put(ISOTHERM, "KVCacheHitRate", Unit::None, hit_rate(added));
    put(ISOTHERM, "TimeToFirstToken", Unit::Seconds, latencies(&added.first_token, 1e-6));
    put(ISOTHERM, "Spills", Unit::Count, share(added.spills));
    put(SAGEMAKER, "MidStreamErrors", Unit::Count, share(added.mid_stream_errors));
    put(SAGEMAKER, "FirstChunkLatency", Unit::Microseconds, microseconds(&added.first_token));
    put(SAGEMAKER, "FirstChunkModelLatency", Unit::Microseconds, microseconds(&added.first_token_of_model));
    put(SAGEMAKER, "FirstChunkOverheadLatency", Unit::Microseconds, microseconds(&added.overhead_of_streams));
    let per_instance = times(1.0 / reading.instances.max(1) as f64, requests);
    let (per_instance_name, concurrency_name) = match reading.place.kind {
        Kind::Variant { .. } => ("InvocationsPerInstance", "ConcurrentRequestsPerModel"),
        Kind::Component { .. } => ("InvocationsPerCopy", "ConcurrentRequestsPerCopy"),
        Kind::Instance { .. } | Kind::Copy { .. } => {
            put(ISOTHERM, "ConcurrentRequests", Unit::Count, concurrency);
            return figures;
        }
    };
    put(SAGEMAKER, per_instance_name, Unit::None, per_instance);
    put(SAGEMAKER, concurrency_name, Unit::Count, concurrency);
    if let Kind::Component { .. } = reading.place.kind {
        put(SAGEMAKER, "NoCapacityInvocationFailures", Unit::Count, times(1.0, added.without_capacity));
    }
    figures
}

/// How much the machines under a place are used, one value for each. Percent of all cores or accelerators together, but
/// for `GPUUtilization` and `GPUMemoryUtilization`, which are sums over the accelerators; so has it SageMaker.
pub(super) fn of_machines(reading: &Reading) -> Vec<Figure> {
    let namespace = match reading.place.kind {
        Kind::Variant { .. } | Kind::Instance { .. } => OF_ENDPOINTS,
        Kind::Component { .. } | Kind::Copy { .. } => OF_COMPONENTS,
    };
    let per_gpu = |sum: Option<f64>, machine: &Machine| sum.map(|sum| sum / machine.gpus.max(1) as f64);
    let metrics: [(&'static str, Measure<'_>); 6] = [
        ("CPUUtilizationNormalized", &|machine| machine.cpu),
        ("MemoryUtilization", &|machine| machine.memory),
        ("GPUUtilization", &|machine| machine.gpu),
        ("GPUUtilizationNormalized", &|machine| per_gpu(machine.gpu, machine)),
        ("GPUMemoryUtilization", &|machine| machine.gpu_memory),
        ("GPUMemoryUtilizationNormalized", &|machine| per_gpu(machine.gpu_memory, machine)),
    ];
    let figure = |(name, of): (&'static str, Measure<'_>)| {
        let values = Summary::of_values(reading.machines.iter().filter_map(of).map(|value| (value, 1.0)))?;
        Some(Figure { namespace, name, unit: Unit::Percent, values })
    };
    metrics.into_iter().filter_map(figure).collect()
}

/// How much of a machine is used, where its engine tells.
type Measure<'a> = &'a dyn Fn(&Machine) -> Option<f64>;

/// A value that occurred so many times.
fn times(value: f64, count: u64) -> Option<Summary> {
    (count > 0).then(|| Summary::repeated(value, count as f64))
}

/// A 1 for each request of the part, a 0 for each other one.
fn of_requests(requests: u64, part: u64) -> Option<Summary> {
    let values = [(0.0, requests.saturating_sub(part)), (1.0, part)];
    Summary::of_values(values.into_iter().filter(|(_, count)| *count > 0).map(|(value, count)| (value, count as f64)))
}

/// The share of cached prompt tokens, once per token, so that averages over any time are true.
fn hit_rate(added: &InvocationFigures) -> Option<Summary> {
    times(added.cached_tokens as f64 / added.prompt_tokens.max(1) as f64, added.prompt_tokens)
}

fn microseconds(latencies: &LatencyFigures) -> Option<Summary> {
    self::latencies(latencies, 1.0)
}

/// Latencies in a unit of so many microseconds' inverse.
fn latencies(latencies: &LatencyFigures, scale: f64) -> Option<Summary> {
    let values = latencies.buckets().map(|(microseconds, count)| (microseconds * scale, f64::from(count)));
    let sum = latencies.sum_microseconds() as f64 * scale;
    Summary::of_values(values).map(|values| values.with_sum(sum))
}
