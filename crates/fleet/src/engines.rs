//! What engines tell of themselves on their metrics pages, in one form for all of them. One file per engine.

mod exposition;
mod llama_cpp;
mod machine;
mod sglang;
#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;
mod trtllm;
mod vllm;

use serde::Serialize;

use self::exposition::Samples;
pub use self::machine::Machine;

/// Which engine an instance runs, as its metrics show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// vLLM, and what shows its names.
    Vllm,
    /// SGLang.
    Sglang,
    /// TensorRT-LLM: `trtllm-serve`, or Triton's backend.
    Trtllm,
    /// llama.cpp's `llama-server`.
    LlamaCpp,
}

impl EngineKind {
    /// The word in listings.
    pub const fn as_str(self) -> &'static str {
        match self {
            EngineKind::Vllm => "vllm",
            EngineKind::Sglang => "sglang",
            EngineKind::Trtllm => "trtllm",
            EngineKind::LlamaCpp => "llama_cpp",
        }
    }

    fn of(metric: &str) -> Option<EngineKind> {
        let prefixes = [
            ("vllm:", EngineKind::Vllm),
            ("sglang:", EngineKind::Sglang),
            ("trtllm_", EngineKind::Trtllm),
            ("nv_trt_llm_", EngineKind::Trtllm),
            ("llamacpp:", EngineKind::LlamaCpp),
        ];
        prefixes.into_iter().find(|(prefix, _)| metric.starts_with(prefix)).map(|(_, kind)| kind)
    }
}

/// An engine's figures at one moment; what it does not tell is `None`, never 0. Over all its data-parallel ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EngineFigures {
    /// Which engine it is.
    pub kind: EngineKind,
    /// Requests that it computes, of all its clients.
    pub running: Option<u64>,
    /// Requests that wait in it.
    pub waiting: Option<u64>,
    /// How much of the KV cache running requests hold, 0 to 1.
    pub kv_cache_usage: Option<f64>,
    /// Memory of the accelerators that it uses.
    pub gpu_memory_bytes: Option<u64>,
    /// Prompt tokens that it looked up in its prefix cache since it started.
    pub prefix_cache_queries: Option<u64>,
    /// Those of them that it found.
    pub prefix_cache_hits: Option<u64>,
    /// Tokens of prompts and answers since it started: what falls back to 0 when it starts anew.
    #[serde(skip)]
    pub tokens: Option<u64>,
    /// When its process started, in Unix time.
    pub started: Option<f64>,
    /// Whether prefix caching is on, where its configuration is told.
    pub prefix_caching: Option<bool>,
    /// Tokens of a block of its cache.
    pub block_tokens: Option<u64>,
    /// Tokens that its cache holds.
    pub cache_tokens: Option<u64>,
    /// By what its cache knows blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash_algorithm: Option<String>,
    /// How busy the machine under it is.
    #[serde(skip)]
    pub machine: Machine,
}

/// How far start times of one process may be apart: they are computed from the machine's uptime.
const SAME_START: f64 = 0.5;

impl EngineFigures {
    /// Reads a metrics page; `None` when no engine that is known speaks there.
    pub fn read(page: &str) -> Option<EngineFigures> {
        let samples = Samples::parse(page);
        let kind = samples.names().find_map(EngineKind::of)?;
        let figures = match kind {
            EngineKind::Vllm => vllm::read(&samples),
            EngineKind::Sglang => sglang::read(&samples),
            EngineKind::Trtllm => trtllm::read(&samples),
            EngineKind::LlamaCpp => llama_cpp::read(&samples),
        };
        let started = figures.started.or_else(|| samples.sum("process_start_time_seconds"));
        // What an engine says that none can be is not told on.
        let share = |usage: f64| (usage.is_finite() && usage >= 0.0).then_some(usage.min(1.0));
        let started = started.filter(|started| started.is_finite());
        let kv_cache_usage = figures.kv_cache_usage.and_then(share);
        Some(EngineFigures { started, kv_cache_usage, machine: Machine::read(&samples), ..figures })
    }

    /// Nothing of an engine but its kind.
    fn unknown(kind: EngineKind) -> EngineFigures {
        EngineFigures {
            kind,
            running: None,
            waiting: None,
            kv_cache_usage: None,
            gpu_memory_bytes: None,
            prefix_cache_queries: None,
            prefix_cache_hits: None,
            tokens: None,
            started: None,
            prefix_caching: None,
            block_tokens: None,
            cache_tokens: None,
            hash_algorithm: None,
            machine: Machine::default(),
        }
    }

    /// Whether these are of another process than the figures before: it started at another time, or its counters fell.
    pub fn is_another_process(&self, before: &EngineFigures) -> bool {
        let started_anew = self.started.zip(before.started).is_some_and(|(now, then)| (now - then).abs() > SAME_START);
        let fell = |now: Option<u64>, then: Option<u64>| now.zip(then).is_some_and(|(now, then)| now < then);
        started_anew
            || self.kind != before.kind
            || fell(self.prefix_cache_queries, before.prefix_cache_queries)
            || fell(self.prefix_cache_hits, before.prefix_cache_hits)
            || fell(self.tokens, before.tokens)
    }
}

/// A count as a page writes it, if it is one.
fn whole(number: f64) -> Option<u64> {
    (number.is_finite() && (0.0..9e15).contains(&number)).then_some(number as u64)
}
