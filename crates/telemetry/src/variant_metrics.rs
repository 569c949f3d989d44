//! The series of one variant, resolved once: counting takes no lock and builds no label.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use isotherm_core::{Arm, Decision, Reason, SpillCause, StrategyName};
use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::counts::VariantCounts;
use crate::duration_histogram::DurationHistogram;
use crate::invocations::Invocations;
use crate::labels::{
    CacheOutcome, ClientStage, InvocationFault, Labels, RetryKind, ShadowCopy, ShedCause, StatusClass,
};
use crate::metrics::Shared;
use crate::series::Lazy;
use crate::views::Views;

/// How many APIs are told apart; more than there are.
const APIS: usize = 32;

/// How many models of a variant are told apart.
const MODELS: usize = 100;

/// The longest model name in a label, in characters; a longer one is cut.
const LONGEST_MODEL: usize = 100;

/// The API that most clients call.
const USUAL_API: &str = "chat_completions";

const STRATEGIES: usize = StrategyName::ALL.len();
const ARMS: usize = Arm::ALL.len();
const REASONS: usize = Reason::ALL.len();
const CAUSES: usize = SpillCause::ALL.len();

/// What is counted for a variant. When the last handle is dropped, the variant's series end.
#[derive(Debug)]
pub struct VariantMetrics {
    shared: Arc<Shared>,
    scope: Labels,
    requests: [OnceLock<(&'static str, Lazy<Counter, { StatusClass::ALL.len() }>)>; APIS],
    duration: OnceLock<DurationHistogram>,
    models: RwLock<HashMap<Arc<str>, Counter>>,
    decisions: Box<Lazy<Counter, { STRATEGIES * ARMS * REASONS * (CAUSES + 1) }>>,
    spills: Lazy<Counter, CAUSES>,
    route: OnceLock<DurationHistogram>,
    first_token: Lazy<DurationHistogram, { ARMS * REASONS }>,
    first_token_by_outcome: Lazy<DurationHistogram, { CacheOutcome::ALL.len() }>,
    retries: Lazy<Counter, { RetryKind::ALL.len() }>,
    resends_refused: OnceLock<Counter>,
    client_disconnects: Lazy<Counter, { ClientStage::ALL.len() }>,
    waiting: OnceLock<Gauge>,
    invocations: Invocations,
    index: OnceLock<Gauge>,
    shed: Lazy<Counter, { ShedCause::ALL.len() }>,
    invocation_faults: Lazy<Counter, { InvocationFault::ALL.len() }>,
    shadow_copies: Lazy<Counter, { ShadowCopy::ALL.len() }>,
}

impl VariantMetrics {
    pub(crate) fn new(shared: Arc<Shared>, scope: Labels) -> VariantMetrics {
        VariantMetrics {
            shared,
            scope,
            requests: [const { OnceLock::new() }; APIS],
            duration: OnceLock::new(),
            models: RwLock::default(),
            decisions: Box::default(),
            spills: Lazy::default(),
            route: OnceLock::new(),
            first_token: Lazy::default(),
            first_token_by_outcome: Lazy::default(),
            retries: Lazy::default(),
            resends_refused: OnceLock::new(),
            client_disconnects: Lazy::default(),
            waiting: OnceLock::new(),
            invocations: Invocations::default(),
            index: OnceLock::new(),
            shed: Lazy::default(),
            invocation_faults: Lazy::default(),
            shadow_copies: Lazy::default(),
        }
    }

    /// Makes the series whose labels are known beforehand, so that their first count shows as an increase.
    pub(crate) fn begin_at_zero(&self) {
        for cause in SpillCause::ALL {
            self.spills(cause);
        }
        for kind in RetryKind::ALL {
            self.retries(*kind);
        }
        for stage in ClientStage::ALL {
            self.client_disconnects(*stage);
        }
        for cause in ShedCause::ALL {
            self.sheds(*cause);
        }
        for fault in InvocationFault::ALL {
            self.invocation_faults(*fault);
        }
        for copy in ShadowCopy::ALL {
            self.shadow_copies(*copy);
        }
        for outcome in CacheOutcome::ALL {
            self.first_tokens_by_outcome(*outcome);
        }
        for class in [StatusClass::Success, StatusClass::ClientError, StatusClass::ServerError] {
            self.requests(USUAL_API, class);
        }
        self.resends_refused_counter();
        self.waiting();
        self.durations();
        self.routes();
        self.keys_compared(0);
    }

    /// Makes the series of what a strategy usually decides, for the same reason. It is the one in force from now on.
    pub fn begin_strategy(&self, strategy: StrategyName) {
        let reasons: &[Reason] = match strategy {
            StrategyName::Random => &[Reason::Random],
            StrategyName::RoundRobin => &[Reason::RoundRobin],
            StrategyName::LeastOutstandingRequests => &[Reason::LeastOutstanding],
            StrategyName::PrefixAware => &[Reason::Home, Reason::Spill, Reason::Saturated],
            StrategyName::Adaptive => &[Reason::Warm, Reason::Cold],
        };
        for reason in reasons {
            let cause = (*reason == Reason::Spill).then_some(SpillCause::Threshold);
            self.decisions(strategy, Arm::Strategy, *reason, cause);
            self.first_tokens(Arm::Strategy, *reason);
        }
    }

    pub(crate) fn views(&self) -> &Views {
        &self.shared.views
    }

    pub(crate) fn scope(&self) -> &Labels {
        &self.scope
    }

    /// A request was answered with this status, or its client left (499), so long after its arrival.
    pub fn request(&self, api: &'static str, status: u16, duration: Duration) {
        let class = StatusClass::of(status);
        self.requests(api, class).inc();
        self.durations().observe(duration);
    }

    fn requests(&self, api: &'static str, class: StatusClass) -> &Counter {
        // The slot of this API, or the next free one; those beyond the last slot share it.
        let of_api = |slot: &'_ &OnceLock<(&'static str, _)>| slot.get_or_init(|| (api, Lazy::default())).0 == api;
        let slot = self.requests.iter().find(of_api).unwrap_or(&self.requests[APIS - 1]);
        let (api, classes) = slot.get_or_init(|| (api, Lazy::default()));
        let labels = || self.scope.with("api", *api).with("code", class.as_str());
        classes.get(class as usize, || self.shared.requests.series(labels()))
    }

    fn durations(&self) -> &DurationHistogram {
        self.duration.get_or_init(|| self.shared.request_duration.series(self.scope.clone()))
    }

    /// A request that named this model was answered with success. Not to be called for others: a client could fill the
    /// labels with words of its own.
    pub fn model(&self, model: &str) {
        let model = model.char_indices().nth(LONGEST_MODEL).map_or(model, |(end, _)| &model[..end]);
        if let Some(counter) = self.models.read().get(model) {
            counter.inc();
            return;
        }
        let label: String = model.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        let mut models = self.models.write();
        let label = if models.len() < MODELS { label.as_str() } else { "other" };
        let counter = self.shared.model_requests.series(self.scope.with("model", label));
        counter.inc();
        if models.len() < MODELS {
            models.insert(model.into(), counter);
        }
    }

    /// A decision was made.
    pub fn decision(&self, decision: &Decision) {
        let Decision { strategy, arm, reason, cause, .. } = *decision;
        self.decisions(strategy, arm, reason, cause).inc();
        if let Some(cause) = cause {
            self.spills(cause).inc();
        }
    }

    fn decisions(&self, strategy: StrategyName, arm: Arm, reason: Reason, cause: Option<SpillCause>) -> &Counter {
        let of_cause = cause.map_or(0, |cause| cause as usize + 1);
        let index = ((strategy as usize * ARMS + arm as usize) * REASONS + reason as usize) * (CAUSES + 1) + of_cause;
        let labels = || {
            self.scope
                .with("strategy", strategy.as_str())
                .with("arm", arm.as_str())
                .with("reason", reason.as_str())
                .with("cause", cause.map_or("none", SpillCause::as_str))
        };
        self.decisions.get(index, || self.shared.decisions.series(labels()))
    }

    /// It took so long from a request's body being there to the choice of its instance.
    pub fn routed(&self, elapsed: Duration) {
        self.routes().observe(elapsed);
    }

    fn routes(&self) -> &DurationHistogram {
        self.route.get_or_init(|| self.shared.route.series(self.scope.clone()))
    }

    /// The first generated token came so long after the request's arrival.
    pub fn first_token(&self, arm: Arm, reason: Reason, elapsed: Duration) {
        self.first_tokens(arm, reason).observe(elapsed);
    }

    fn first_tokens(&self, arm: Arm, reason: Reason) -> &DurationHistogram {
        let labels = || self.scope.with("arm", arm.as_str()).with("reason", reason.as_str());
        let index = arm as usize * REASONS + reason as usize;
        self.first_token.get(index, || self.shared.time_to_first_token.series(labels()))
    }

    /// The first generated token of a finished request came so long after its arrival, with this use of the cache.
    pub fn first_token_by_outcome(&self, outcome: CacheOutcome, elapsed: Duration) {
        self.first_tokens_by_outcome(outcome).observe(elapsed);
    }

    fn first_tokens_by_outcome(&self, outcome: CacheOutcome) -> &DurationHistogram {
        let labels = || self.scope.with("outcome", outcome.as_str());
        self.first_token_by_outcome.get(outcome as usize, || self.shared.first_token_by_outcome.series(labels()))
    }

    /// What was counted so far, for views of the router.
    pub fn counts(&self) -> VariantCounts {
        let mut counts = VariantCounts::default();
        for (_, classes) in self.requests.iter().filter_map(OnceLock::get) {
            for (class, counter) in classes.used() {
                counts.answers[class] += counter.get();
            }
        }
        for (index, counter) in self.decisions.used() {
            counts.decisions[index / (CAUSES + 1) % REASONS] += counter.get();
        }
        self.spills.used().for_each(|(cause, counter)| counts.spills[cause] = counter.get());
        self.shed.used().for_each(|(cause, counter)| counts.sheds[cause] = counter.get());
        counts.retries = self.retries.used().map(|(_, counter)| counter.get()).sum();
        counts.clients_left = self.client_disconnects.used().map(|(_, counter)| counter.get()).sum();
        for (outcome, histogram) in self.first_token_by_outcome.used() {
            counts.first_token[outcome] = histogram.figures();
        }
        counts
    }

    /// A request is tried again.
    pub fn retry(&self, kind: RetryKind) {
        self.retries(kind).inc();
    }

    /// A request would have been sent again, but the budget was used up.
    pub fn resend_refused(&self) {
        self.resends_refused_counter().inc();
    }

    /// A client left before the end of its response.
    pub fn client_left(&self, stage: ClientStage) {
        self.client_disconnects(stage).inc();
    }

    /// A request was shed.
    pub fn shed(&self, cause: ShedCause) {
        self.sheds(cause).inc();
    }

    /// An invocation on SageMaker's paths went wrong.
    pub fn invocation_fault(&self, fault: InvocationFault) {
        self.invocation_faults(fault).inc();
    }

    fn invocation_faults(&self, fault: InvocationFault) -> &Counter {
        let labels = || self.scope.with("kind", fault.as_str());
        self.invocation_faults.get(fault as usize, || self.shared.invocation_faults.series(labels()))
    }

    /// A request of the endpoint was copied for this variant, which is a shadow, or was not.
    pub fn shadow_copy(&self, copy: ShadowCopy) {
        self.shadow_copies(copy).inc();
    }

    fn shadow_copies(&self, copy: ShadowCopy) -> &Counter {
        let labels = || self.scope.with("outcome", copy.as_str());
        self.shadow_copies.get(copy as usize, || self.shared.shadow_copies.series(labels()))
    }

    /// How many requests wait for an instance; whoever waits adds one and takes it off again.
    pub fn waiting(&self) -> &Gauge {
        self.waiting.get_or_init(|| self.shared.waiting.series(self.scope.clone()))
    }

    /// What became of its requests, as CloudWatch counts it.
    pub fn invocations(&self) -> &Invocations {
        &self.invocations
    }

    /// The strategy's beliefs take so many bytes; 0 where it has none.
    pub fn set_index_bytes(&self, bytes: usize) {
        let gauge = self.index.get_or_init(|| self.shared.index.series(self.scope.clone()));
        gauge.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    fn spills(&self, cause: SpillCause) -> &Counter {
        let labels = || self.scope.with("cause", cause.as_str());
        self.spills.get(cause as usize, || self.shared.spills.series(labels()))
    }

    fn retries(&self, kind: RetryKind) -> &Counter {
        let labels = || self.scope.with("kind", kind.as_str());
        self.retries.get(kind as usize, || self.shared.retries.series(labels()))
    }

    fn resends_refused_counter(&self) -> &Counter {
        self.resends_refused.get_or_init(|| self.shared.resends_refused.series(self.scope.clone()))
    }

    fn client_disconnects(&self, stage: ClientStage) -> &Counter {
        let labels = || self.scope.with("stage", stage.as_str());
        self.client_disconnects.get(stage as usize, || self.shared.client_disconnects.series(labels()))
    }

    fn sheds(&self, cause: ShedCause) -> &Counter {
        let labels = || self.scope.with("cause", cause.as_str());
        self.shed.get(cause as usize, || self.shared.shed.series(labels()))
    }
}

impl Drop for VariantMetrics {
    fn drop(&mut self) {
        self.shared.variants.end(&self.scope, self, || self.shared.remove_within(&self.scope));
    }
}
