//! Every metric that the router exports: its name as it is scraped, and what it means.
//!
//! Names begin with `isotherm_`, except those about the process, for which the Prometheus ecosystem has one set of
//! names. Units are base units; shares are 0 to 1; counters end in `_total`.

use prometheus_client::registry::Unit;

/// A metric's name and help text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricName {
    /// The full name, with unit and `_total`.
    pub name: &'static str,
    /// What is counted, without a full stop at the end.
    pub help: &'static str,
}

impl MetricName {
    /// The name and the unit as a registry wants them: encoders put `_total` and the unit back.
    pub(crate) fn parts(self) -> (&'static str, Option<Unit>) {
        let name = self.name.strip_suffix("_total").unwrap_or(self.name);
        [("_seconds", Unit::Seconds), ("_bytes", Unit::Bytes)]
            .into_iter()
            .find_map(|(suffix, unit)| Some((name.strip_suffix(suffix)?, Some(unit))))
            .unwrap_or((name, None))
    }
}

macro_rules! metric_names {
    ($($constant:ident = $name:literal, $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: MetricName = MetricName { name: $name, help: $help };
        )*

        /// Every metric, in the order in which they are scraped.
        pub const ALL: &[MetricName] = &[$($constant),*];
    };
}

metric_names! {
    REQUESTS = "isotherm_requests_total",
        "Requests answered, by API and class of status (a client that left counts as 4xx)";
    REQUEST_DURATION = "isotherm_request_duration_seconds", "From a request's arrival to the end of its response";
    MODEL_REQUESTS = "isotherm_model_requests_total",
        "Requests that an instance answered with success, by the model that they named; models beyond the first 100 \
         of a variant count as other";
    DECISIONS = "isotherm_decisions_total",
        "Routing decisions by strategy, arm of the rollout, reason, and cause of a spill";
    SPILLS = "isotherm_spills_total", "Requests sent elsewhere because their home was full, by what made it full";
    ROUTE = "isotherm_route_seconds", "From a request's body being there to the choice of its instance";
    TIME_TO_FIRST_TOKEN = "isotherm_time_to_first_token_seconds",
        "From a request's arrival to its first generated token, by arm of the rollout and reason of the decision";
    TIME_TO_FIRST_TOKEN_BY_OUTCOME = "isotherm_time_to_first_token_by_cache_outcome_seconds",
        "From a request's arrival to its first generated token, by what the prefix cache was worth: hit (half of the \
         prompt or more came from the cache), miss, spill (its home was full), unknown (the engine does not say)";
    IN_FLIGHT = "isotherm_in_flight", "Requests chosen for an instance by this router and not yet finished";
    PROMPT_TOKENS = "isotherm_prompt_tokens_total", "Prompt tokens, as the engines count them";
    CACHED_TOKENS = "isotherm_cached_tokens_total", "Prompt tokens that engines took from their caches";
    CACHE_REPORTED_PROMPT_TOKENS = "isotherm_cache_reported_prompt_tokens_total",
        "Prompt tokens of responses that said how many were cached; the hit rate is cached tokens by these";
    EXPECTED_CACHED_TOKENS = "isotherm_expected_cached_tokens_total",
        "Prompt tokens that ADAPTIVE believed to be in the cache, of responses that said how many were";
    OUTPUT_TOKENS = "isotherm_output_tokens_total", "Generated tokens, as the engines count them";
    UPSTREAM_ERRORS = "isotherm_upstream_errors_total", "What went wrong between router and instance, by kind";
    RETRIES = "isotherm_retries_total", "Further attempts at a request, by kind";
    RESENDS_REFUSED = "isotherm_resends_refused_total",
        "Requests that were not sent again because the budget for resends was used up";
    CLIENT_DISCONNECTS = "isotherm_client_disconnects_total",
        "Clients that left before the end of their response, by how far it was";
    WAITING = "isotherm_waiting_requests", "Requests that wait for an instance below its max_in_flight";
    SHED = "isotherm_shed_requests_total", "Requests refused because every instance was at its max_in_flight, by cause";
    INVOCATION_FAULTS = "isotherm_invocation_faults_total",
        "What went wrong with invocations on SageMaker's paths: errors of the container, streams that broke off, \
         inference components without a copy";
    SHADOW_COPIES = "isotherm_shadow_copies_total",
        "Copies of requests for a shadow variant: sent, or dropped so that the shadow holds nothing up";
    INDEX = "isotherm_index_bytes", "Memory of what ADAPTIVE believes the instances' caches to hold";
    INSTANCE_UP = "isotherm_instance_up", "1 while an instance answers its probes, else 0";
    INSTANCE_EJECTED = "isotherm_instance_ejected",
        "1 while an instance gets no requests because it failed some, else 0";
    INSTANCE_DRAINING = "isotherm_instance_draining", "1 while an instance gets no new requests on demand, else 0";
    REQUEST_SHARE = "isotherm_instance_request_share",
        "An instance's part of its variant's requests of the last 15 minutes, 0 to 1";
    HOT_PREFIX_SHARE = "isotherm_hot_prefix_share",
        "The hottest prefixes' parts of a variant's requests that have a key, 0 to 1; the last minutes weigh most";
    COMPARED_KEYS = "isotherm_compared_keys_total",
        "Keys seen lately whose homes were compared when the fleet changed";
    REMAPPED_KEYS = "isotherm_remapped_keys_total",
        "Compared keys whose home became another instance, by the new one";
    REPEATED_REQUESTS = "isotherm_repeated_requests_total",
        "Requests whose prefix their instance had served within 15 minutes, where the engine says what was cached; a sample where there are many";
    REPEATED_MISSES = "isotherm_repeated_misses_total", "Of these, requests of whose prompt nothing was cached";
    ENGINE_SCRAPE_SUCCESS = "isotherm_engine_scrape_success",
        "1 when the last reading of an engine's metrics went well, else 0";
    ENGINE_RUNNING = "isotherm_engine_running_requests", "Requests that an engine computes, of all its clients";
    ENGINE_WAITING = "isotherm_engine_waiting_requests", "Requests that wait in an engine";
    ENGINE_KV_CACHE_USAGE = "isotherm_engine_kv_cache_usage_ratio",
        "How much of an engine's KV cache running requests hold, 0 to 1";
    ENGINE_GPU_MEMORY = "isotherm_engine_gpu_memory_bytes", "Memory of the accelerators that an engine uses";
    ENGINE_CACHE_QUERIES = "isotherm_engine_prefix_cache_queries_total",
        "Prompt tokens that an engine looked up in its prefix cache, by its own count";
    ENGINE_CACHE_HITS = "isotherm_engine_prefix_cache_hits_total",
        "Prompt tokens that an engine found in its prefix cache, by its own count";
    ENGINE_START_TIME = "isotherm_engine_start_time_seconds", "When an engine's process started, in Unix time";
    ENGINE_RESTARTS = "isotherm_engine_restarts_total",
        "How often an engine's process was found to be another one than before";
    ALERTS_FIRING = "isotherm_alerts_firing", "Alerts of the router itself that fire, by rule";
    ALERT_NOTIFICATIONS = "isotherm_alert_notifications_total",
        "Messages about alerts to webhooks: sent, failed after all attempts, or dropped because too many waited";
    SHADOW_PROMPT_TOKENS = "isotherm_shadow_prompt_tokens_total",
        "Prompt tokens that shadow strategies were tried on, by strategy";
    SHADOW_CACHED_TOKENS = "isotherm_shadow_cached_tokens_total",
        "Prompt tokens that would have been cached under a strategy";
    CLIENT_CONNECTIONS = "isotherm_client_connections", "Open connections of clients";
    CONFIG_RELOAD_SUCCESS = "isotherm_config_reload_success",
        "1 when the last reading of the configuration went well, else 0";
    CONFIG_RELOAD_TIMESTAMP = "isotherm_config_reload_timestamp_seconds",
        "When the configuration in force was read, in Unix time";
    ACCESS_LOG_DROPPED = "isotherm_access_log_dropped_total",
        "Access log lines dropped because the log was written too slowly";
    ACCESS_LOG_ERRORS = "isotherm_access_log_write_errors_total", "Access log lines lost because writing failed";
    SPANS_DROPPED = "isotherm_otlp_dropped_requests_total",
        "Traced requests whose spans were not sent: too many waited, or the receiver did not take them";
    BUILD_INFO = "isotherm_build_info", "1, with the version as a label";
    PROCESS_START_TIME = "process_start_time_seconds", "When the process started, in Unix time";
    PROCESS_CPU = "process_cpu_seconds_total", "Processor time used, user and system";
    PROCESS_RESIDENT_MEMORY = "process_resident_memory_bytes", "Resident memory";
    PROCESS_OPEN_FDS = "process_open_fds", "Open file descriptors";
}
