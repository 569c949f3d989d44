//! How busy the machine under an engine is, where the engine's page tells: Triton's does, under NVIDIA's names.
//!
//! vLLM's page tells the processor time of the process that answers alone, and not that of its engine; so that counts for
//! nothing here.

use super::exposition::Samples;

/// How much of a machine is in use, in percent; what nobody tells is `None`, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Machine {
    /// Of all processor cores together.
    pub cpu: Option<f64>,
    /// Of its memory.
    pub memory: Option<f64>,
    /// Of its accelerators, the sum over all of them: 400 where four are busy.
    pub gpu: Option<f64>,
    /// Of the accelerators' memory, the sum likewise.
    pub gpu_memory: Option<f64>,
    /// How many accelerators it tells of.
    pub gpus: usize,
}

impl Machine {
    /// Reads Triton's metrics ("Metrics" in Triton's user guide): rates from 0 to 1, and bytes, for each GPU by its
    /// `gpu_uuid`.
    pub(super) fn read(samples: &Samples<'_>) -> Machine {
        let percent = |rate: f64| 100.0 * rate;
        let share = |used: &str, total: &str| {
            let total = samples.sum(total).filter(|total| *total > 0.0)?;
            samples.sum(used).map(|used| percent(used / total))
        };
        let gpu_memory = samples.of("nv_gpu_memory_used_bytes").filter_map(|used| {
            let id = used.label("gpu_uuid")?;
            let total = samples.with("nv_gpu_memory_total_bytes", "gpu_uuid", id).filter(|total| *total > 0.0)?;
            Some(percent(used.value / total))
        });
        let gpu = samples.sum("nv_gpu_utilization").map(percent);
        let gpus = samples.of("nv_gpu_utilization").count().max(samples.of("nv_gpu_memory_used_bytes").count());
        Machine {
            cpu: samples.sum("nv_cpu_utilization").map(percent),
            memory: share("nv_cpu_memory_used_bytes", "nv_cpu_memory_total_bytes"),
            gpu,
            gpu_memory: gpu_memory.reduce(|sum, one| sum + one),
            gpus,
        }
    }
}
