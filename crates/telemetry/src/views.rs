//! What the control runtime finds out by itself, as series: engines' own figures, shares, hot prefixes, keys that moved.
//! Nothing here is touched by a request.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::instance_metrics::InstanceMetrics;
use crate::labels::{INSTANCE, Labels};
use crate::series::Family;
use crate::variant_metrics::VariantMetrics;

/// A gauge of a number with a fraction.
pub(crate) type Fraction = Gauge<f64, AtomicU64>;

/// The families of these series.
#[derive(Debug)]
pub(crate) struct Views {
    pub(crate) request_share: Family<Fraction>,
    pub(crate) hot_prefix_share: Family<Fraction>,
    pub(crate) compared_keys: Family<Counter>,
    pub(crate) remapped_keys: Family<Counter>,
    pub(crate) repeated: Family<Counter>,
    pub(crate) repeated_misses: Family<Counter>,
    pub(crate) scrape_success: Family<Gauge>,
    pub(crate) running: Family<Gauge>,
    pub(crate) waiting: Family<Gauge>,
    pub(crate) kv_cache_usage: Family<Fraction>,
    pub(crate) gpu_memory: Family<Gauge>,
    pub(crate) prefix_cache_queries: Family<Counter>,
    pub(crate) prefix_cache_hits: Family<Counter>,
    pub(crate) start_time: Family<Fraction>,
    pub(crate) restarts: Family<Counter>,
}

/// An engine's own figures at one moment; what it does not tell is `None`, and then there is no series.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EngineReading {
    /// Requests that it computes.
    pub running: Option<u64>,
    /// Requests that wait in it.
    pub waiting: Option<u64>,
    /// How much of the KV cache is held, 0 to 1.
    pub kv_cache_usage: Option<f64>,
    /// Memory of its accelerators in use.
    pub gpu_memory_bytes: Option<u64>,
    /// When its process started, in Unix time.
    pub start_time: Option<f64>,
    /// Prompt tokens looked up in its prefix cache since the last reading.
    pub new_prefix_cache_queries: Option<u64>,
    /// Those of them that were found.
    pub new_prefix_cache_hits: Option<u64>,
}

impl Views {
    /// Ends all series of a variant or an instance.
    pub(crate) fn remove_within(&self, scope: &Labels) {
        let counters = [
            &self.compared_keys,
            &self.remapped_keys,
            &self.repeated,
            &self.repeated_misses,
            &self.prefix_cache_queries,
            &self.prefix_cache_hits,
            &self.restarts,
        ];
        counters.into_iter().for_each(|family| family.remove_within(scope));
        let gauges = [&self.scrape_success, &self.running, &self.waiting, &self.gpu_memory];
        gauges.into_iter().for_each(|family| family.remove_within(scope));
        let fractions = [&self.request_share, &self.hot_prefix_share, &self.kv_cache_usage, &self.start_time];
        fractions.into_iter().for_each(|family| family.remove_within(scope));
    }
}

/// Sets a gauge to a value, or ends it where there is none.
macro_rules! show {
    ($family:expr, $labels:expr, $value:expr) => {
        match $value {
            Some(value) => _ = $family.series($labels.clone()).set(value),
            None => $family.remove_within($labels),
        }
    };
}

impl InstanceMetrics {
    /// What its engine told, or that it told nothing.
    pub fn set_engine(&self, reading: Option<&EngineReading>) {
        let (views, scope) = (self.views(), self.scope());
        let signed = |number: Option<u64>| number.map(|number| i64::try_from(number).unwrap_or(i64::MAX));
        views.scrape_success.series(scope.clone()).set(reading.is_some().into());
        // Frozen gauges would look like an engine that stands still.
        let told = reading.copied().unwrap_or_default();
        show!(views.running, scope, signed(told.running));
        show!(views.waiting, scope, signed(told.waiting));
        show!(views.kv_cache_usage, scope, told.kv_cache_usage);
        show!(views.gpu_memory, scope, signed(told.gpu_memory_bytes));
        show!(views.start_time, scope, told.start_time);
        if let Some(tokens) = told.new_prefix_cache_queries {
            views.prefix_cache_queries.series(scope.clone()).inc_by(tokens);
        }
        if let Some(tokens) = told.new_prefix_cache_hits {
            views.prefix_cache_hits.series(scope.clone()).inc_by(tokens);
        }
    }

    /// Nobody asks its engine any more.
    pub fn forget_engine(&self) {
        let (views, scope) = (self.views(), self.scope());
        for family in [&views.scrape_success, &views.running, &views.waiting, &views.gpu_memory] {
            family.remove_within(scope);
        }
        for family in [&views.kv_cache_usage, &views.start_time] {
            family.remove_within(scope);
        }
    }

    /// Its process is another one than before.
    pub fn engine_restarted(&self) {
        self.views().restarts.series(self.scope().clone()).inc();
    }

    /// How often that happened.
    pub fn engine_restarts(&self) -> u64 {
        self.views().restarts.find(self.scope()).map_or(0, |restarts| restarts.get())
    }

    /// Its part of the variant's requests of the last minutes, 0 to 1.
    pub fn set_request_share(&self, share: Option<f64>) {
        show!(self.views().request_share, self.scope(), share);
    }

    /// So many requests had a key that it had served before, and of so many of these nothing was cached.
    pub fn repeated(&self, requests: u64, misses: u64) {
        self.views().repeated.series(self.scope().clone()).inc_by(requests);
        self.views().repeated_misses.series(self.scope().clone()).inc_by(misses);
    }
}

impl VariantMetrics {
    /// The hottest prefixes now, by their keys in hexadecimal, each with its share of the requests, 0 to 1.
    pub fn set_hot_prefixes(&self, prefixes: &[(String, f64)]) {
        let (views, scope) = (self.views(), self.scope());
        views.hot_prefix_share.remove_within(scope);
        for (key, share) in prefixes {
            views.hot_prefix_share.series(scope.with("prefix", key.as_str())).set(*share);
        }
    }

    /// The fleet changed: so many of the keys seen lately were compared.
    pub fn keys_compared(&self, keys: u64) {
        self.views().compared_keys.series(self.scope().clone()).inc_by(keys);
    }

    /// Of these, so many have this instance as their home now, and had another.
    pub fn keys_remapped(&self, instance: &str, keys: u64) {
        self.views().remapped_keys.series(self.scope().with(INSTANCE, Arc::<str>::from(instance))).inc_by(keys);
    }
}
