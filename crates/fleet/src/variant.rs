//! A production variant that all threads share: one short lock around the routing state, and the queue before it.

/// How many failed probes in a row make an instance of this variant down; the configuration allows no 0.
fn probes_to_down(plan: &isotherm_config::Variant) -> NonZeroU32 {
    NonZeroU32::new(plan.health.failures).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
#[cfg(feature = "shuttle")]
mod interleavings;
mod queue;
mod slot;
#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;
mod waiting;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::Waker;

use arc_swap::ArcSwap;
use isotherm_core::{
    Availability, Decision, Evidence, Generation, InstanceId, InstanceSpec, InstanceView, ModelHash, Models, PrefixKey,
    Prompt, Refusal, RouteRequest, Routing, ScoreEntry, Time, VariantState, Weight,
};
use isotherm_telemetry::{InstanceMetrics, Metrics, VariantMetrics};
use rand::Rng;
use tracing::info;

pub use self::queue::{Bounds, LONGEST_FOR_HOME, NotPlaced, Rank};
use self::queue::{Queue, is_away_from_home};
pub use self::slot::SlotGuard;
pub use self::waiting::Waiting;
use crate::listing::Listing;
use crate::lock::Mutex;
use crate::{Clock, Instance, Location, Model};

/// A set of instances with one routing configuration.
///
/// Choosing and counting happen in one step under one lock, so that two threads can't take the same last place. What
/// the lock guards is plain numbers; it is held for microseconds and never across an await.
pub struct Variant {
    endpoint: Arc<str>,
    name: Arc<str>,
    revision: u64,
    clock: Clock,
    plan: ArcSwap<isotherm_config::Variant>,
    registry: Arc<Metrics>,
    metrics: Arc<VariantMetrics>,
    guarded: Mutex<Guarded>,
}

struct Guarded {
    state: VariantState<Arc<Instance>>,
    queue: Queue,
}

/// A request's place on an instance: the decision, the instance, and the slot that counts it there.
#[derive(Debug)]
pub struct Placement {
    /// What was decided and why.
    pub decision: Decision,
    /// The chosen instance.
    pub instance: Arc<Instance>,
    /// Counts the request as in flight until it is dropped.
    pub slot: SlotGuard,
}

/// One instance as it stood at one moment.
#[derive(Debug, Clone)]
pub struct InstanceNow {
    /// The instance.
    pub instance: Arc<Instance>,
    /// Its present life.
    pub generation: Generation,
    /// Its share relative to the others.
    pub weight: Weight,
    /// The most requests that may be in flight on it.
    pub max_in_flight: Option<NonZeroU32>,
    /// Requests in flight on it.
    pub in_flight: u32,
    /// Whether it may be chosen.
    pub availability: Availability,
}

/// One place in a key's order of instances.
#[derive(Debug, Clone)]
pub struct OrderedInstance {
    /// The instance.
    pub now: InstanceNow,
    /// Whether it may be chosen for this request: up, and serving the model.
    pub eligible: bool,
}

/// What `ADAPTIVE` reckons of a prompt on an instance.
#[derive(Debug, Clone)]
pub struct ScoredInstance {
    /// The instance.
    pub now: InstanceNow,
    /// Whether it may be chosen for this request.
    pub eligible: bool,
    /// Whether it would be chosen.
    pub chosen: bool,
    /// How much of the prompt's beginning it is believed to hold, in bytes.
    pub held_bytes: u64,
    /// Tokens of the prompt that it would have to compute.
    pub uncached_tokens: f64,
    /// Tokens that it has to compute before.
    pub waiting_tokens: f64,
    /// The latency in milliseconds that the request would add there, to itself and to the others.
    pub milliseconds: f64,
}

impl Variant {
    /// A variant as configured, still without instances. The revision tells it from another one of its name.
    pub(crate) fn new(
        endpoint: Arc<str>,
        name: Arc<str>,
        revision: u64,
        plan: isotherm_config::Variant,
        registry: Arc<Metrics>,
        clock: Clock,
    ) -> Variant {
        let metrics = registry.variant(&endpoint, &name);
        metrics.begin_strategy(plan.routing.strategy.name());
        let queue = Queue::new(metrics.waiting().clone());
        let mut state = VariantState::new(plan.routing, clock.now());
        state.set_probes_to_down(probes_to_down(&plan));
        let guarded = Guarded { state, queue };
        Variant {
            endpoint,
            name,
            revision,
            clock,
            plan: ArcSwap::from_pointee(plan),
            registry,
            metrics,
            guarded: Mutex::new(guarded),
        }
    }

    /// The name of the endpoint that it belongs to.
    pub fn endpoint(&self) -> &Arc<str> {
        &self.endpoint
    }

    /// Its name, unique within its endpoint but for a deployment's two. That of an inference component's copies is
    /// `VARIANT/COMPONENT`.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Which of the deployments of its endpoint made it; 0 where the file did.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// What is counted for it. The fleet itself keeps how many requests wait; the rest is for whoever serves them.
    pub fn metrics(&self) -> &Arc<VariantMetrics> {
        &self.metrics
    }

    /// What is counted for an instance of that id.
    pub(crate) fn instance_metrics(&self, id: &InstanceId) -> Arc<InstanceMetrics> {
        self.registry.instance(&self.metrics, id.as_str())
    }

    /// What the configuration says of it.
    pub(crate) fn plan(&self) -> Arc<isotherm_config::Variant> {
        self.plan.load_full()
    }

    pub(crate) fn set_plan(&self, plan: isotherm_config::Variant) {
        let (routing, probes_to_down) = (plan.routing, probes_to_down(&plan));
        self.plan.store(Arc::new(plan));
        self.metrics.begin_strategy(routing.strategy.name());
        self.change(|state| {
            state.set_probes_to_down(probes_to_down);
            state.set_routing(routing);
        });
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Where an instance of that id stands.
    pub(crate) fn location_of(&self, id: &InstanceId) -> Location {
        Location { endpoint: Arc::clone(&self.endpoint), variant: Arc::clone(&self.name), instance: id.clone() }
    }

    /// Whether a location lies in this variant.
    pub(crate) fn is_at(&self, location: &Location) -> bool {
        (&location.endpoint, &location.variant) == (&self.endpoint, &self.name)
    }

    /// The routing configuration in force.
    pub fn routing(&self) -> Routing {
        self.guarded.lock().state.routing()
    }

    /// Chooses an instance for a request and counts the request there, until the placement's slot is dropped.
    ///
    /// A request's first choice (nothing tried yet) also feeds the budget of resends.
    pub fn choose<R: Rng>(
        self: &Arc<Self>,
        request: &RouteRequest<'_>,
        now: Time,
        rng: &mut R,
    ) -> Result<Placement, Refusal> {
        let mut guarded = self.guarded.lock();
        if request.tried.is_empty() {
            guarded.state.retry_budget().count_request(now);
        }
        let mut choice = guarded.state.choose(request, now, rng);
        if !guarded.queue.is_empty() && choice.as_ref().is_ok_and(is_away_from_home) {
            // What is left free for a moment is for those whose home it is, else for whoever waits already.
            choice = choice.and_then(|choice| {
                guarded.state.finish(choice.slot);
                Err(Refusal::Full)
            });
        }
        drop(guarded);
        choice.map(|choice| Placement::of(self, choice))
    }

    /// Joins the queue for an instance with room, after [`Variant::choose`] has said [`Refusal::Full`].
    ///
    /// The future that is returned is ready when its turn has come and it was placed, when waiting has become pointless
    /// (nothing is left that could serve it), or when more wait than may and it stands last. Room goes to the first whose
    /// home it is, else to the first that has waited for its home for [`LONGEST_FOR_HOME`]; first is who has the lower
    /// priority, then whose tenant's turn it is, then who came first. Dropping it leaves the queue.
    pub fn wait<R: Rng>(
        self: &Arc<Self>,
        request: &RouteRequest<'_>,
        rank: Rank<'_>,
        rng: &mut R,
        bounds: Bounds,
    ) -> Waiting {
        Waiting::join(self, request, rank, rng, bounds)
    }

    /// How many requests wait for room.
    pub fn waiting(&self) -> usize {
        self.guarded.lock().queue.len()
    }

    /// Takes in something that was seen of an instance. True when it changed whether the instance may be chosen.
    pub fn observe(&self, generation: Generation, evidence: Evidence, now: Time) -> bool {
        self.change(|state| state.observe(generation, evidence, now))
    }

    /// An instance's process is another one than before: it is believed to hold nothing.
    pub(crate) fn restarted(&self, generation: Generation) {
        self.guarded.lock().state.restarted(generation);
    }

    /// Takes one resend out of the budget; false when there is none left.
    pub fn withdraw_resend(&self, now: Time) -> bool {
        self.guarded.lock().state.retry_budget().withdraw(now)
    }

    /// Every instance, in the order in which they were added.
    pub fn instances(&self, now: Time) -> Vec<InstanceNow> {
        self.guarded.lock().state.instances(now).map(|view| InstanceNow::of(&view)).collect()
    }

    /// Every instance in the order of a key, the eligible ones and the others alike: what `explain` shows.
    pub fn order(&self, key: PrefixKey, model: Option<ModelHash>, now: Time) -> Vec<OrderedInstance> {
        let guarded = self.guarded.lock();
        let order = guarded.state.order(key, model, now);
        order
            .iter()
            .map(|entry| OrderedInstance { now: InstanceNow::of(&entry.instance), eligible: entry.eligible })
            .collect()
    }

    /// What `ADAPTIVE` reckons of a prompt on every instance: what `explain` shows. Nothing is counted.
    pub fn scores(&self, request: &RouteRequest<'_>, prompt: &Prompt, now: Time) -> Vec<ScoredInstance> {
        let mut guarded = self.guarded.lock();
        guarded.state.scores(request, prompt, now).iter().map(ScoredInstance::of).collect()
    }

    /// What the strategy's beliefs take, in bytes.
    pub(crate) fn index_bytes(&self) -> usize {
        self.guarded.lock().state.index_bytes()
    }

    /// Whether a request could be placed: some instance is neither down nor draining.
    ///
    /// Ejected ones count: when nothing else is left, ejections are ignored.
    pub fn has_eligible(&self, now: Time) -> bool {
        self.guarded
            .lock()
            .state
            .instances(now)
            .any(|view| matches!(view.availability, Availability::Up | Availability::Ejected { .. }))
    }

    /// Whether an instance of that id lives in it.
    pub(crate) fn has(&self, id: &InstanceId) -> bool {
        self.guarded.lock().state.instances(Time::ZERO).any(|view| view.id == id)
    }

    /// The models that its instances list, as often as they do.
    pub fn models(&self) -> Vec<Arc<Model>> {
        self.listings().into_iter().flatten().flat_map(|listing| listing.models().to_vec()).collect()
    }

    /// What each instance last listed; `None` for one that has not said.
    pub(crate) fn listings(&self) -> Vec<Option<Arc<Listing>>> {
        let guarded = self.guarded.lock();
        guarded.state.instances(Time::ZERO).map(|view| view.data.listing()).collect()
    }

    /// Begins the life of an instance, if none of that id lives.
    pub(crate) fn add(&self, spec: InstanceSpec, instance: Arc<Instance>) {
        let (id, origin) = (spec.id.clone(), instance.origin().clone());
        if self.change(|state| state.add(spec, instance)).is_some() {
            info!(endpoint = %self.endpoint, variant = %self.name, instance = %id, %origin, "added");
        }
    }

    /// Ends the life of an instance; requests in flight on it go on.
    pub(crate) fn remove(&self, id: &InstanceId, why: &str) {
        if self.change(|state| state.remove(id)).is_some() {
            info!(endpoint = %self.endpoint, variant = %self.name, instance = %id, "removed: {why}");
        }
    }

    /// Ends the life of an instance and begins another one of the same id, in one step.
    pub(crate) fn replace(&self, spec: InstanceSpec, instance: Arc<Instance>, draining: bool, why: &str) {
        let id = spec.id.clone();
        self.change(|state| {
            state.remove(&id);
            state.add(spec, instance);
            state.set_draining(&id, draining);
        });
        info!(endpoint = %self.endpoint, variant = %self.name, instance = %id, "replaced: {why}");
    }

    /// Changes the weight and the bound of an instance, in place.
    pub(crate) fn update(&self, spec: &InstanceSpec) {
        self.change(|state| state.update(spec));
    }

    pub(crate) fn set_draining(&self, id: &InstanceId, draining: bool) {
        self.change(|state| state.set_draining(id, draining));
    }

    pub(crate) fn set_models(&self, generation: Generation, models: Models) {
        self.change(|state| state.set_models(generation, models));
    }

    /// Changes the state and places whoever waits and can be placed now.
    fn change<T>(&self, change: impl FnOnce(&mut VariantState<Arc<Instance>>) -> T) -> T {
        let mut guarded = self.guarded.lock();
        let result = change(&mut guarded.state);
        let placed = guarded.place_waiting(self.clock);
        drop(guarded);
        placed.into_iter().for_each(Waker::wake);
        result
    }
}

/// Its name is enough to know it by, and taking the lock to tell more could wait for the one who asks.
impl fmt::Debug for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variant({}/{})", self.endpoint, self.name)
    }
}

impl Guarded {
    /// Places whoever waits and can be placed; the wakers are to be woken after the lock is released.
    fn place_waiting(&mut self, clock: Clock) -> Vec<Waker> {
        if self.queue.is_empty() { Vec::new() } else { self.queue.place(&mut self.state, clock.now()) }
    }
}

impl ScoredInstance {
    fn of(entry: &ScoreEntry<'_, Arc<Instance>>) -> ScoredInstance {
        ScoredInstance {
            now: InstanceNow::of(&entry.instance),
            eligible: entry.eligible,
            chosen: entry.chosen,
            held_bytes: entry.held_bytes,
            uncached_tokens: entry.uncached_tokens,
            waiting_tokens: entry.waiting_tokens,
            milliseconds: entry.milliseconds,
        }
    }
}

impl InstanceNow {
    /// Whether it takes nothing new, and what it has goes on.
    pub fn is_draining(&self) -> bool {
        self.availability == Availability::Draining
    }

    /// Whether it may be chosen and was heard of.
    pub(crate) fn is_ready(&self) -> bool {
        let may_be_chosen = matches!(self.availability, Availability::Up | Availability::Ejected { .. });
        may_be_chosen && self.instance.was_heard_of()
    }

    /// Whether it was asked everything that it is asked.
    pub(crate) fn is_known(&self, asks_for_figures: bool) -> bool {
        let engine = self.instance.engine();
        let told = match &engine.figures {
            Some(_) => engine.who_asked,
            None => !asks_for_figures || engine.problem.is_some(),
        };
        self.availability == Availability::Down || (self.instance.listing().is_some() && told)
    }

    fn of(view: &InstanceView<'_, Arc<Instance>>) -> InstanceNow {
        InstanceNow {
            instance: Arc::clone(view.data),
            generation: view.generation,
            weight: view.weight,
            max_in_flight: view.max_in_flight,
            in_flight: view.in_flight,
            availability: view.availability,
        }
    }
}
