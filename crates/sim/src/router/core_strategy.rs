//! The strategies that serve: `isotherm_core::VariantState`, fed as the proxy feeds it.

use std::collections::HashMap;

use isotherm_core::{
    Generation, HashSeed, InstanceId, InstanceSpec, Refusal, RouteRequest, Routing, Slot, Time, VariantState,
};
use rand_pcg::Pcg64;

use super::{Answer, Placed, Routed, Router};
use crate::prompt::key;

/// A variant whose instances are the simulated ones.
#[derive(Debug)]
pub(crate) struct CoreStrategy {
    state: VariantState<u32>,
    hash_seed: HashSeed,
    lives: HashMap<u32, (InstanceId, Generation)>,
    tried: Vec<Generation>,
}

impl CoreStrategy {
    pub(crate) fn new(routing: Routing, hash_seed: HashSeed) -> CoreStrategy {
        let state = VariantState::new(routing, Time::ZERO);
        CoreStrategy { state, hash_seed, lives: HashMap::new(), tried: Vec::new() }
    }
}

impl Router for CoreStrategy {
    fn add(&mut self, instance: u32, id: &InstanceId, _now: Time) {
        if let Some(generation) = self.state.add(InstanceSpec::new(id.clone()), instance) {
            self.lives.insert(instance, (id.clone(), generation));
        }
    }

    fn drain(&mut self, instance: u32, _now: Time) {
        if let Some((id, _)) = self.lives.get(&instance) {
            self.state.set_draining(id, true);
        }
    }

    fn remove(&mut self, instance: u32, _now: Time) {
        if let Some((id, _)) = self.lives.remove(&instance) {
            self.state.remove(&id);
        }
    }

    fn choose(&mut self, request: &Routed<'_>, now: Time, rng: &mut Pcg64) -> Result<Placed, Refusal> {
        let prefix_length = self.state.routing().prefix_length();
        self.tried.clear();
        self.tried.extend(request.tried.iter().filter_map(|instance| Some(self.lives.get(instance)?.1)));
        let route = RouteRequest {
            key: prefix_length.and_then(|length| key(self.hash_seed, length, request.request)),
            tried: &self.tried,
            ..RouteRequest::default()
        };
        let choice = self.state.choose(&route, now, rng)?;
        Ok(Placed { instance: choice.instance, reason: choice.decision.reason, slot: Some(choice.slot) })
    }

    fn finish(&mut self, _answer: &Answer, slot: Option<Slot>, _now: Time) {
        if let Some(slot) = slot {
            self.state.finish(slot);
        }
    }
}
