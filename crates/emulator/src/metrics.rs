//! `/metrics`: the engine's figures under the names, types and labels of vLLM 0.32.

use std::fmt::{Display, Write};
use std::time::UNIX_EPOCH;

use isotherm_engine_model::BLOCK_TOKENS;

use crate::emulator::Emulator;

/// The whole page in Prometheus' text format.
pub(crate) fn page(emulator: &Emulator) -> String {
    let mut page = Page { text: String::with_capacity(16 << 10), model: label_value(&emulator.config().model) };
    page.process(emulator);
    page.engine(emulator);
    page.requests(emulator);
    page.cache_config(emulator);
    page.emulator(emulator);
    page.text
}

struct Page {
    text: String,
    /// Escaped for use between quotes.
    model: String,
}

impl Page {
    fn process(&mut self, emulator: &Emulator) {
        let started = emulator.started_at().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        self.describe("process_start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.");
        let _ = writeln!(self.text, "process_start_time_seconds {started:?}");
    }

    fn engine(&mut self, emulator: &Emulator) {
        let figures = emulator.statistics();
        let local_compute = figures.prefix_cache_queries - figures.prefix_cache_hits;
        self.gauge(
            "vllm:num_requests_running",
            "Number of requests in model execution batches.",
            figures.running as f64,
        );
        self.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", figures.waiting as f64);
        self.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", figures.kv_usage());
        for (name, help, value) in [
            (
                "vllm:prefix_cache_queries_total",
                "Prefix cache queries, in terms of number of queried tokens.",
                figures.prefix_cache_queries,
            ),
            (
                "vllm:prefix_cache_hits_total",
                "Prefix cache hits, in terms of number of cached tokens.",
                figures.prefix_cache_hits,
            ),
            ("vllm:num_preemptions_total", "Cumulative number of preemption from the engine.", figures.preemptions),
            ("vllm:prompt_tokens_total", "Number of prefill tokens processed.", figures.prompt_tokens),
            (
                "vllm:prompt_tokens_cached_total",
                "Number of cached prompt tokens (local + external).",
                figures.prefix_cache_hits,
            ),
            ("vllm:generation_tokens_total", "Number of generation tokens processed.", figures.generation_tokens),
        ] {
            self.counter(name, help, value);
        }
        self.describe("vllm:prompt_tokens_by_source_total", "counter", "Number of prompt tokens by source.");
        for (source, value) in [
            ("local_compute", local_compute),
            ("local_cache_hit", figures.prefix_cache_hits),
            ("external_kv_transfer", 0),
        ] {
            self.sample("vllm:prompt_tokens_by_source_total", "", &format!(",source=\"{source}\""), value as f64);
        }
    }

    fn requests(&mut self, emulator: &Emulator) {
        let meters = emulator.meters();
        self.describe("vllm:request_success_total", "counter", "Count of successfully processed requests.");
        for (reason, count) in [
            ("stop", meters.stopped),
            ("length", meters.reached_limit),
            ("abort", meters.aborted),
            ("error", 0),
            ("repetition", 0),
        ] {
            let label = format!("finished_reason=\"{reason}\",");
            self.sample("vllm:request_success_total", &label, "", count as f64);
        }
        let model = format!("model_name=\"{}\"", self.model);
        for (name, help, histogram) in [
            (
                "vllm:time_to_first_token_seconds",
                "Histogram of time to first token in seconds.",
                &meters.time_to_first_token,
            ),
            ("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", &meters.latency),
        ] {
            self.describe(name, "histogram", help);
            histogram.render(name, "engine=\"0\"", &model, &mut self.text);
        }
    }

    fn cache_config(&mut self, emulator: &Emulator) {
        let blocks = emulator.statistics().capacity_blocks;
        let prefix_caching = if emulator.faults().get().no_prefix_caching { "False" } else { "True" };
        self.describe("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig");
        let _ = writeln!(
            self.text,
            "vllm:cache_config_info{{block_size=\"{BLOCK_TOKENS}\",cache_dtype=\"auto\",enable_prefix_caching=\"{prefix_caching}\",\
             engine=\"0\",gpu_memory_utilization=\"0.92\",kv_cache_size_tokens=\"{}\",num_cpu_blocks=\"None\",\
             num_gpu_blocks=\"{blocks}\",prefix_caching_hash_algo=\"sha256\"}} 1.0",
            blocks * BLOCK_TOKENS as usize,
        );
    }

    /// What no real engine has: how far the emulation can be trusted.
    fn emulator(&mut self, emulator: &Emulator) {
        let lag = emulator.lag().report();
        for (name, help, value) in [
            ("emulator_speed", "Model seconds per wall-clock second.", emulator.config().speed),
            (
                "emulator_step_lag_seconds",
                "How late clients got the tokens of the last step, wall-clock time.",
                lag.current.as_secs_f64(),
            ),
            ("emulator_step_lag_p99_seconds", "99th percentile of the lag.", lag.p99.as_secs_f64()),
            ("emulator_step_lag_max_seconds", "Largest lag.", lag.max.as_secs_f64()),
            (
                "emulator_http_requests_in_flight",
                "Requests neither answered in full nor left.",
                emulator.observed().borrow().in_flight() as f64,
            ),
        ] {
            self.gauge(name, help, value);
        }
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.describe(name, "gauge", help);
        self.sample(name, "", "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.describe(name, "counter", help);
        self.sample(name, "", "", value as f64);
    }

    fn describe(&mut self, name: &str, kind: &str, help: impl Display) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// One sample; further labels stand before or after `model_name`, in alphabetical order.
    fn sample(&mut self, name: &str, before_model: &str, after_model: &str, value: f64) {
        let model = &self.model;
        let _ =
            writeln!(self.text, "{name}{{engine=\"0\",{before_model}model_name=\"{model}\"{after_model}}} {value:?}");
    }
}

fn label_value(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
