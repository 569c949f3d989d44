//! The registry and all families of series; hands out the handles by which they are counted.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};

use crate::alert_metrics::AlertMetrics;
use crate::duration_histogram::DurationHistogram;
use crate::exemplars::Exemplars;
use crate::exposition::{Exposition, Format};
use crate::handles::Handles;
use crate::instance_metrics::InstanceMetrics;
use crate::labels::{CacheOutcome, INSTANCE, Labels};
use crate::names::{self, MetricName};
use crate::process::ProcessCollector;
use crate::series::Family;
use crate::shadow_metrics::ShadowMetrics;
use crate::spans::{SpanContext, Spans};
use crate::tap::Tap;
use crate::traces::Traces;
use crate::variant_metrics::VariantMetrics;
use crate::views::{Fraction, Views};

/// Bounds of buckets in seconds: prefill takes milliseconds when cached and minutes under load.
pub(crate) const TIME_TO_FIRST_TOKEN: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.175, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 120.0,
    300.0, 600.0,
];

/// Bounds of buckets in seconds.
const REQUEST_DURATION: &[f64] =
    &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0];

/// Bounds of buckets in seconds: a decision takes microseconds.
const ROUTE: &[f64] = &[
    0.000_001, 0.000_002, 0.000_005, 0.000_01, 0.000_02, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.01,
    0.1,
];

/// All metrics of a router.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    shared: Arc<Shared>,
    unplaced: Arc<VariantMetrics>,
    client_connections: Gauge,
    config_reload_success: Gauge,
    config_reload_timestamp: Gauge,
    access_log_dropped: Counter,
    access_log_errors: Counter,
    tap: Tap,
    traces: Traces,
    spans: Spans,
    exemplars: Exemplars,
    shadows: ShadowMetrics,
    alerts: AlertMetrics,
}

/// The families of which variants and instances have series, and who is alive.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) requests: Family<Counter>,
    pub(crate) request_duration: Family<DurationHistogram>,
    pub(crate) model_requests: Family<Counter>,
    pub(crate) decisions: Family<Counter>,
    pub(crate) spills: Family<Counter>,
    pub(crate) route: Family<DurationHistogram>,
    pub(crate) time_to_first_token: Family<DurationHistogram>,
    pub(crate) first_token_by_outcome: Family<DurationHistogram>,
    pub(crate) in_flight: Family<Gauge>,
    pub(crate) prompt_tokens: Family<Counter>,
    pub(crate) cached_tokens: Family<Counter>,
    pub(crate) cache_reported_prompt_tokens: Family<Counter>,
    pub(crate) expected_cached_tokens: Family<Counter>,
    pub(crate) output_tokens: Family<Counter>,
    pub(crate) upstream_errors: Family<Counter>,
    pub(crate) retries: Family<Counter>,
    pub(crate) resends_refused: Family<Counter>,
    pub(crate) client_disconnects: Family<Counter>,
    pub(crate) waiting: Family<Gauge>,
    pub(crate) shed: Family<Counter>,
    pub(crate) invocation_faults: Family<Counter>,
    pub(crate) shadow_copies: Family<Counter>,
    pub(crate) index: Family<Gauge>,
    pub(crate) instance_up: Family<Gauge>,
    pub(crate) instance_ejected: Family<Gauge>,
    pub(crate) instance_draining: Family<Gauge>,
    pub(crate) variants: Handles<VariantMetrics>,
    pub(crate) views: Views,
    pub(crate) instances: Handles<InstanceMetrics>,
}

impl Metrics {
    /// A registry of its own for a router of this version, which starts now.
    pub fn new(version: &str) -> Metrics {
        let mut registry = Registry::default();
        let shared = Arc::new(Shared::registered(&mut registry));
        let alerts = AlertMetrics::registered(&mut registry);
        let shadows = ShadowMetrics::registered(&mut registry);
        let client_connections = registered(&mut registry, names::CLIENT_CONNECTIONS, Gauge::default());
        let config_reload_success = registered(&mut registry, names::CONFIG_RELOAD_SUCCESS, Gauge::default());
        let config_reload_timestamp = registered(&mut registry, names::CONFIG_RELOAD_TIMESTAMP, Gauge::default());
        let access_log_dropped = registered(&mut registry, names::ACCESS_LOG_DROPPED, Counter::default());
        let access_log_errors = registered(&mut registry, names::ACCESS_LOG_ERRORS, Counter::default());
        let registered_spans = registered(&mut registry, names::SPANS_DROPPED, Counter::default());
        let build_info: Family<Gauge> = registered(&mut registry, names::BUILD_INFO, Family::new(Gauge::default));
        build_info.series(Labels::default().with("version", version)).set(1);
        registry.register_collector(Box::new(ProcessCollector::started_at(SystemTime::now())));
        let nobody = Labels::default().with("endpoint", "").with("variant", "");
        let unplaced = Arc::new(VariantMetrics::new(Arc::clone(&shared), nobody));
        Metrics {
            registry,
            shared,
            unplaced,
            client_connections,
            config_reload_success,
            config_reload_timestamp,
            access_log_dropped,
            access_log_errors,
            tap: Tap::default(),
            traces: Traces::default(),
            spans: Spans::counting(registered_spans),
            exemplars: Exemplars::default(),
            shadows,
            alerts,
        }
    }

    /// The handle of a variant; keep it as long as the variant lives.
    pub fn variant(&self, endpoint: &str, variant: &str) -> Arc<VariantMetrics> {
        let scope = Labels::default().with("endpoint", endpoint).with("variant", variant);
        self.shared.variants.handle(scope, |scope| {
            let variant = VariantMetrics::new(Arc::clone(&self.shared), scope);
            variant.begin_at_zero();
            variant
        })
    }

    /// The handle of an instance of a variant; keep it as long as the instance lives.
    pub fn instance(&self, variant: &Arc<VariantMetrics>, instance: &str) -> Arc<InstanceMetrics> {
        self.shared.instances.handle(variant.scope().with(INSTANCE, instance), |scope| {
            InstanceMetrics::new(Arc::clone(&self.shared), scope, Arc::clone(variant))
        })
    }

    /// For requests that never came to a variant: unknown paths, wrong keys, bodies too large.
    pub fn unplaced(&self) -> &VariantMetrics {
        &self.unplaced
    }

    /// How many clients are connected; whoever accepts one adds one and takes it off again.
    pub fn client_connections(&self) -> &Gauge {
        &self.client_connections
    }

    /// What is told of finished requests to whoever watches the router.
    pub fn tap(&self) -> &Tap {
        &self.tap
    }

    /// What is counted of shadow strategies.
    pub fn shadows(&self) -> &ShadowMetrics {
        &self.shadows
    }

    /// The last requests with the hashes of their prompts.
    pub fn traces(&self) -> &Traces {
        &self.traces
    }

    /// Which requests are traced, and what of them waits to be sent.
    pub fn spans(&self) -> &Spans {
        &self.spans
    }

    /// A traced request had its first token: so its bucket of the time to first token leads to its trace.
    pub fn exemplify(
        &self,
        variant: (&Arc<str>, &Arc<str>),
        outcome: CacheOutcome,
        span: &SpanContext,
        value: Duration,
    ) {
        self.exemplars.note(variant, outcome, span, value, SystemTime::now());
    }

    /// What is counted of the router's own alerts.
    pub fn alerts(&self) -> &AlertMetrics {
        &self.alerts
    }

    /// A configuration was read and is in force now.
    pub fn config_loaded(&self, now: SystemTime) {
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.config_reload_success.set(1);
        self.config_reload_timestamp.set(i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX));
    }

    /// A configuration was read and refused; the one before stays in force.
    pub fn config_refused(&self) {
        self.config_reload_success.set(0);
    }

    pub(crate) fn access_log_dropped(&self) -> &Counter {
        &self.access_log_dropped
    }

    pub(crate) fn access_log_errors(&self) -> &Counter {
        &self.access_log_errors
    }

    /// All metrics as text, in the format that a scraper's `accept` header asks for.
    pub fn expose(&self, accept: Option<&str>) -> Exposition {
        let format = Format::accepted(accept);
        let Exposition { content_type, body } = Exposition::of(&self.registry, format);
        match format {
            Format::OpenMetrics => Exposition { content_type, body: self.exemplars.annotate(body) },
            // The older format has no exemplars.
            Format::Prometheus => Exposition { content_type, body },
        }
    }
}

impl Shared {
    fn registered(registry: &mut Registry) -> Shared {
        fn counters(registry: &mut Registry, name: MetricName) -> Family<Counter> {
            registered(registry, name, Family::new(Counter::default))
        }
        fn gauges(registry: &mut Registry, name: MetricName) -> Family<Gauge> {
            registered(registry, name, Family::new(Gauge::default))
        }
        fn fractions(registry: &mut Registry, name: MetricName) -> Family<Fraction> {
            registered(registry, name, Family::new(Fraction::default))
        }
        fn histograms(
            registry: &mut Registry,
            name: MetricName,
            make: fn() -> DurationHistogram,
        ) -> Family<DurationHistogram> {
            registered(registry, name, Family::new(make))
        }
        Shared {
            requests: counters(registry, names::REQUESTS),
            request_duration: histograms(registry, names::REQUEST_DURATION, || {
                DurationHistogram::new(REQUEST_DURATION)
            }),
            model_requests: counters(registry, names::MODEL_REQUESTS),
            decisions: counters(registry, names::DECISIONS),
            spills: counters(registry, names::SPILLS),
            route: histograms(registry, names::ROUTE, || DurationHistogram::new(ROUTE)),
            time_to_first_token: histograms(registry, names::TIME_TO_FIRST_TOKEN, || {
                DurationHistogram::new(TIME_TO_FIRST_TOKEN)
            }),
            first_token_by_outcome: histograms(registry, names::TIME_TO_FIRST_TOKEN_BY_OUTCOME, || {
                DurationHistogram::new(TIME_TO_FIRST_TOKEN)
            }),
            in_flight: gauges(registry, names::IN_FLIGHT),
            prompt_tokens: counters(registry, names::PROMPT_TOKENS),
            cached_tokens: counters(registry, names::CACHED_TOKENS),
            cache_reported_prompt_tokens: counters(registry, names::CACHE_REPORTED_PROMPT_TOKENS),
            expected_cached_tokens: counters(registry, names::EXPECTED_CACHED_TOKENS),
            output_tokens: counters(registry, names::OUTPUT_TOKENS),
            upstream_errors: counters(registry, names::UPSTREAM_ERRORS),
            retries: counters(registry, names::RETRIES),
            resends_refused: counters(registry, names::RESENDS_REFUSED),
            client_disconnects: counters(registry, names::CLIENT_DISCONNECTS),
            waiting: gauges(registry, names::WAITING),
            shed: counters(registry, names::SHED),
            invocation_faults: counters(registry, names::INVOCATION_FAULTS),
            shadow_copies: counters(registry, names::SHADOW_COPIES),
            index: gauges(registry, names::INDEX),
            instance_up: gauges(registry, names::INSTANCE_UP),
            instance_ejected: gauges(registry, names::INSTANCE_EJECTED),
            instance_draining: gauges(registry, names::INSTANCE_DRAINING),
            views: Views {
                request_share: fractions(registry, names::REQUEST_SHARE),
                hot_prefix_share: fractions(registry, names::HOT_PREFIX_SHARE),
                compared_keys: counters(registry, names::COMPARED_KEYS),
                remapped_keys: counters(registry, names::REMAPPED_KEYS),
                repeated: counters(registry, names::REPEATED_REQUESTS),
                repeated_misses: counters(registry, names::REPEATED_MISSES),
                scrape_success: gauges(registry, names::ENGINE_SCRAPE_SUCCESS),
                running: gauges(registry, names::ENGINE_RUNNING),
                waiting: gauges(registry, names::ENGINE_WAITING),
                kv_cache_usage: fractions(registry, names::ENGINE_KV_CACHE_USAGE),
                gpu_memory: gauges(registry, names::ENGINE_GPU_MEMORY),
                prefix_cache_queries: counters(registry, names::ENGINE_CACHE_QUERIES),
                prefix_cache_hits: counters(registry, names::ENGINE_CACHE_HITS),
                start_time: fractions(registry, names::ENGINE_START_TIME),
                restarts: counters(registry, names::ENGINE_RESTARTS),
            },
            variants: Handles::default(),
            instances: Handles::default(),
        }
    }

    /// Ends all series of a variant or an instance.
    pub(crate) fn remove_within(&self, scope: &Labels) {
        let counters = [
            &self.requests,
            &self.model_requests,
            &self.decisions,
            &self.spills,
            &self.prompt_tokens,
            &self.cached_tokens,
            &self.cache_reported_prompt_tokens,
            &self.expected_cached_tokens,
            &self.output_tokens,
            &self.upstream_errors,
            &self.retries,
            &self.resends_refused,
            &self.client_disconnects,
            &self.shed,
            &self.invocation_faults,
            &self.shadow_copies,
        ];
        let gauges = [
            &self.in_flight,
            &self.waiting,
            &self.index,
            &self.instance_up,
            &self.instance_ejected,
            &self.instance_draining,
        ];
        let histograms = [&self.request_duration, &self.route, &self.time_to_first_token, &self.first_token_by_outcome];
        counters.into_iter().for_each(|family| family.remove_within(scope));
        gauges.into_iter().for_each(|family| family.remove_within(scope));
        histograms.into_iter().for_each(|family| family.remove_within(scope));
        self.views.remove_within(scope);
    }
}

/// Registers a metric under its full name.
pub(crate) fn registered<M: Metric + Clone>(registry: &mut Registry, of: MetricName, metric: M) -> M {
    match of.parts() {
        (name, Some(unit)) => registry.register_with_unit(name, of.help, unit, metric.clone()),
        (name, None) => registry.register(name, of.help, metric.clone()),
    }
    metric
}

#[cfg(test)]
mod tests;
