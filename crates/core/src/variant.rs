//! The state of one production variant: its instances and their in-flight counts; choosing and counting in one step.

mod choose;
mod explain;
mod feedback;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

use self::choose::Candidate;
pub use self::choose::RouteRequest;
pub use self::explain::{InstanceView, OrderEntry, ScoreEntry};
pub use self::feedback::Report;
use crate::adaptive::{Adaptive, Beliefs};
use crate::evidence::{Health, PROBES_TO_DOWN};
use crate::placement::Standing;
use crate::{Evidence, Generation, InstanceId, InstanceSpec, Models, RetryBudget, Routing, Time, Weight};

/// The instances of a variant and how requests are spread over them.
///
/// Plain numbers only; whoever shares it between threads puts it behind one lock, whoever simulates calls it directly.
/// `T` is what the caller keeps with each instance (its address, its index in a simulation) and gets back with a choice.
#[derive(Debug)]
pub struct VariantState<T> {
    routing: Routing,
    probes_to_down: NonZeroU32,
    instances: Vec<Instance<T>>,
    next_generation: u64,
    /// How many turns of least outstanding there were.
    turns: u64,
    retry_budget: RetryBudget,
    adaptive: Adaptive,
    /// Kept between choices, so that choosing allocates nothing.
    candidates: Vec<Candidate>,
}

#[derive(Debug)]
pub(crate) struct Instance<T> {
    id: InstanceId,
    standing: Standing,
    weight: Weight,
    max_in_flight: Option<NonZeroU32>,
    generation: Generation,
    in_flight: u32,
    draining: bool,
    models: Models,
    health: Health,
    /// Smooth weighted round robin: grows by the weight each turn, falls by the sum of weights when chosen.
    credit: f64,
    /// Least outstanding: which turn was its last; 0 before its first.
    turn: u64,
    beliefs: Beliefs,
    data: T,
}

impl<T: Clone> VariantState<T> {
    /// A variant without instances.
    pub fn new(routing: Routing, now: Time) -> VariantState<T> {
        VariantState {
            routing,
            probes_to_down: PROBES_TO_DOWN,
            instances: Vec::new(),
            next_generation: 0,
            turns: 0,
            retry_budget: RetryBudget::new(now),
            adaptive: Adaptive::new(),
            candidates: Vec::new(),
        }
    }

    /// The routing configuration in force.
    pub fn routing(&self) -> Routing {
        self.routing
    }

    /// Changes the routing configuration; counters and health stay.
    pub fn set_routing(&mut self, routing: Routing) {
        self.routing = routing;
    }

    /// How many failed probes in a row make an instance down; 3 where nothing is said.
    pub fn set_probes_to_down(&mut self, probes: NonZeroU32) {
        self.probes_to_down = probes;
    }

    /// The budget of resends.
    pub fn retry_budget(&mut self) -> &mut RetryBudget {
        &mut self.retry_budget
    }

    /// Begins a life of an instance. `None` when one of that id is there already.
    pub fn add(&mut self, spec: InstanceSpec, data: T) -> Option<Generation> {
        if self.instances.iter().any(|instance| instance.id == spec.id) {
            return None;
        }
        let generation = Generation(self.next_generation);
        self.next_generation += 1;
        self.instances.push(Instance {
            standing: Standing::of(&spec.id, spec.host.as_ref()),
            id: spec.id,
            weight: spec.weight,
            max_in_flight: spec.max_in_flight,
            generation,
            in_flight: 0,
            draining: false,
            models: Models::Unknown,
            health: Health::default(),
            credit: 0.0,
            turn: 0,
            beliefs: self.adaptive.join(),
            data,
        });
        Some(generation)
    }

    /// Ends the life of an instance and returns what was kept with it; its slots still out are given back to nobody.
    pub fn remove(&mut self, id: &InstanceId) -> Option<T> {
        let index = self.instances.iter().position(|instance| instance.id == *id)?;
        // Keeps the order, which is the order of turns and of listings.
        let gone = self.instances.remove(index);
        self.adaptive.index.leave(gone.beliefs.seat);
        Some(gone.data)
    }

    /// Changes the weight and the bound of a living instance; its counters stay. False when there is none of that id.
    pub fn update(&mut self, spec: &InstanceSpec) -> bool {
        let found = self.instances.iter_mut().find(|instance| instance.id == spec.id);
        if let Some(instance) = found {
            instance.weight = spec.weight;
            instance.max_in_flight = spec.max_in_flight;
            instance.standing = Standing::of(&spec.id, spec.host.as_ref());
            return true;
        }
        false
    }

    /// Stops or resumes sending new requests to an instance. False when there is none of that id.
    pub fn set_draining(&mut self, id: &InstanceId, draining: bool) -> bool {
        let found = self.instances.iter_mut().find(|instance| instance.id == *id);
        if let Some(instance) = found {
            instance.draining = draining;
            return true;
        }
        false
    }

    /// Takes in an instance's listing of models.
    pub fn set_models(&mut self, generation: Generation, models: Models) {
        if let Some(instance) = self.by_generation(generation) {
            instance.models = models;
        }
    }

    /// Takes in something that was seen of an instance. True when it changed whether the instance may be chosen.
    pub fn observe(&mut self, generation: Generation, evidence: Evidence, now: Time) -> bool {
        let Some(at) = self.position(generation) else { return false };
        let instance = &mut self.instances[at];
        let before = (instance.health.is_down(), instance.health.is_ejected(now));
        instance.health.observe(evidence, now, self.probes_to_down);
        // Nothing listens there, so its process is gone. Told once: nothing new is sent there while it is down.
        if evidence == Evidence::ConnectRefused && !before.0 {
            self.adaptive.restart(&mut instance.beliefs);
        }
        before != (instance.health.is_down(), instance.health.is_ejected(now))
    }

    /// The instance's process is another one than before, though it was never found gone: its cache is empty.
    pub fn restarted(&mut self, generation: Generation) {
        if let Some(at) = self.position(generation) {
            self.adaptive.restart(&mut self.instances[at].beliefs);
        }
    }

    /// What the beliefs of `ADAPTIVE` take, in bytes.
    pub fn index_bytes(&self) -> usize {
        self.adaptive.index.bytes()
    }

    fn by_generation(&mut self, generation: Generation) -> Option<&mut Instance<T>> {
        self.position(generation).map(|at| &mut self.instances[at])
    }

    fn position(&self, generation: Generation) -> Option<usize> {
        // Generations grow in the order of the instances.
        self.instances.binary_search_by_key(&generation, |instance| instance.generation).ok()
    }
}
