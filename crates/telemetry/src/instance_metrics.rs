//! The series of one instance, resolved once; they end when the instance is gone.

use std::sync::Arc;

use isotherm_core::{Arm, Decision};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::counts::InstanceCounts;
use crate::invocations::Invocations;
use crate::labels::{Labels, UpstreamErrorKind};
use crate::metrics::Shared;
use crate::series::Lazy;
use crate::variant_metrics::VariantMetrics;
use crate::views::Views;

const ARMS: usize = Arm::ALL.len();

/// What is counted for an instance. When the last handle is dropped, the instance's series end: a removed instance is
/// not reported for ever.
#[derive(Debug)]
pub struct InstanceMetrics {
    shared: Arc<Shared>,
    scope: Labels,
    in_flight: Gauge,
    prompt_tokens: Lazy<Counter, ARMS>,
    cached_tokens: Lazy<Counter, ARMS>,
    cache_reported_prompt_tokens: Lazy<Counter, ARMS>,
    expected_cached_tokens: Lazy<Counter, ARMS>,
    output_tokens: Counter,
    upstream_errors: Lazy<Counter, { UpstreamErrorKind::ALL.len() }>,
    up: Gauge,
    ejected: Gauge,
    draining: Gauge,
    invocations: Invocations,
    /// Kept so that the variant's series outlive those of its instances.
    _variant: Arc<VariantMetrics>,
}

impl InstanceMetrics {
    pub(crate) fn new(shared: Arc<Shared>, scope: Labels, variant: Arc<VariantMetrics>) -> InstanceMetrics {
        let metrics = InstanceMetrics {
            in_flight: shared.in_flight.series(scope.clone()),
            prompt_tokens: Lazy::default(),
            cached_tokens: Lazy::default(),
            cache_reported_prompt_tokens: Lazy::default(),
            expected_cached_tokens: Lazy::default(),
            output_tokens: shared.output_tokens.series(scope.clone()),
            upstream_errors: Lazy::default(),
            up: shared.instance_up.series(scope.clone()),
            ejected: shared.instance_ejected.series(scope.clone()),
            draining: shared.instance_draining.series(scope.clone()),
            invocations: Invocations::default(),
            shared,
            scope,
            _variant: variant,
        };
        metrics.begin_at_zero();
        metrics
    }

    /// Makes the series whose labels are known beforehand, so that their first count shows as an increase. What only some
    /// strategies expect and some engines tell is not among them: there, no series says more than 0.
    fn begin_at_zero(&self) {
        for tokens in self.tokens_of(Arm::Strategy) {
            tokens.inc_by(0);
        }
        for kind in UpstreamErrorKind::ALL {
            self.upstream_errors(*kind);
        }
        self.repeated(0, 0);
        self.views().remapped_keys.series(self.scope.clone());
        self.views().restarts.series(self.scope.clone());
    }

    pub(crate) fn views(&self) -> &Views {
        &self.shared.views
    }

    pub(crate) fn scope(&self) -> &Labels {
        &self.scope
    }

    /// How many requests are in flight; whoever holds a slot adds one and takes it off again.
    pub fn in_flight(&self) -> &Gauge {
        &self.in_flight
    }

    /// An engine told the length of a prompt and, if it says so at all, how much of it was cached. The decision tells how
    /// much that was believed to be.
    pub fn prompt(&self, decision: &Decision, tokens: u64, cached: Option<u64>) {
        let [prompt_tokens, reported_prompt_tokens, cached_tokens] = self.tokens_of(decision.arm);
        prompt_tokens.inc_by(tokens);
        if let Some(cached) = cached {
            cached_tokens.inc_by(cached);
            reported_prompt_tokens.inc_by(tokens);
            if let Some(expected) = decision.expected_cached_tokens {
                let labels = || self.scope.with("arm", decision.arm.as_str());
                let series = || self.shared.expected_cached_tokens.series(labels());
                self.expected_cached_tokens.get(decision.arm as usize, series).inc_by(expected);
            }
        }
    }

    /// An arm's counters of prompt tokens, of those of responses that said how many were cached, and of the cached ones.
    fn tokens_of(&self, arm: Arm) -> [&Counter; 3] {
        let labels = || self.scope.with("arm", arm.as_str());
        let (index, shared) = (arm as usize, &self.shared);
        [
            self.prompt_tokens.get(index, || shared.prompt_tokens.series(labels())),
            self.cache_reported_prompt_tokens.get(index, || shared.cache_reported_prompt_tokens.series(labels())),
            self.cached_tokens.get(index, || shared.cached_tokens.series(labels())),
        ]
    }

    /// An engine generated tokens.
    pub fn output(&self, tokens: u64) {
        self.output_tokens.inc_by(tokens);
    }

    /// Something went wrong between router and instance.
    pub fn upstream_error(&self, kind: UpstreamErrorKind) {
        self.upstream_errors(kind).inc();
    }

    fn upstream_errors(&self, kind: UpstreamErrorKind) -> &Counter {
        let labels = || self.scope.with("kind", kind.as_str());
        self.upstream_errors.get(kind as usize, || self.shared.upstream_errors.series(labels()))
    }

    /// What was counted so far, for views of the router.
    pub fn counts(&self) -> InstanceCounts {
        fn sum<const N: usize>(counters: &Lazy<Counter, N>) -> u64 {
            counters.used().map(|(_, counter)| counter.get()).sum()
        }
        InstanceCounts {
            requests: self.invocations.requests(),
            prompt_tokens: sum(&self.prompt_tokens),
            cached_tokens: sum(&self.cached_tokens),
            cache_reported_prompt_tokens: sum(&self.cache_reported_prompt_tokens),
            expected_cached_tokens: self
                .expected_cached_tokens
                .used()
                .next()
                .map(|_| sum(&self.expected_cached_tokens)),
            output_tokens: self.output_tokens.get(),
            upstream_errors: sum(&self.upstream_errors),
        }
    }

    /// What became of the requests that it answered, as CloudWatch counts it.
    pub fn invocations(&self) -> &Invocations {
        &self.invocations
    }

    /// Whether the instance answers its probes.
    pub fn set_up(&self, up: bool) {
        self.up.set(up.into());
    }

    /// Whether the instance gets no requests because it failed some.
    pub fn set_ejected(&self, ejected: bool) {
        self.ejected.set(ejected.into());
    }

    /// Whether the instance gets no new requests on demand.
    pub fn set_draining(&self, draining: bool) {
        self.draining.set(draining.into());
    }
}

impl Drop for InstanceMetrics {
    fn drop(&mut self) {
        self.shared.instances.end(&self.scope, self, || self.shared.remove_within(&self.scope));
    }
}
