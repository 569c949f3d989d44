//! The strategies that serve: `isotherm_core::VariantState`, fed as the proxy feeds it.

use std::collections::HashMap;

use isotherm_core::{
    BlockHash, Generation, HashSeed, InstanceId, InstanceSpec, Prompt, Refusal, Report, RouteRequest, Routing, Slot,
    Strategy, Time, VariantState,
};
use rand_pcg::Pcg64;

use super::{Answer, Placed, Routed, Router};
use crate::prompt::{blocks, key};

/// A variant whose instances are the simulated ones.
#[derive(Debug)]
pub(crate) struct CoreStrategy {
    state: VariantState<u32>,
    hash_seed: HashSeed,
    lives: HashMap<u32, (InstanceId, Generation)>,
    tried: Vec<Generation>,
    blocks: Vec<BlockHash>,
    ends: Vec<u32>,
}

impl CoreStrategy {
    pub(crate) fn new(routing: Routing, hash_seed: HashSeed) -> CoreStrategy {
        let state = VariantState::new(routing, Time::ZERO);
        let (lives, tried, blocks, ends) = Default::default();
        CoreStrategy { state, hash_seed, lives, tried, blocks, ends }
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
        let prompt = (self.state.routing().strategy == Strategy::Adaptive).then(|| {
            blocks(request.request, &mut self.blocks, &mut self.ends);
            let (blocks, ends) = (self.blocks.as_slice().into(), self.ends.as_slice().into());
            Prompt { blocks, ends, tenant: u64::from(request.request.tenant.0) }
        });
        let route = RouteRequest {
            key: prefix_length.and_then(|length| key(self.hash_seed, length, request.request)),
            prompt: prompt.as_ref(),
            tried: &self.tried,
            ..RouteRequest::default()
        };
        let choice = self.state.choose(&route, now, rng)?;
        Ok(Placed { instance: choice.instance, reason: choice.decision.reason, slot: Some(choice.slot) })
    }

    fn first_token(&mut self, _answer: &Answer, slot: Option<&mut Slot>, now: Time) {
        if let Some(slot) = slot {
            self.state.first_token(slot, now);
        }
    }

    fn finish(&mut self, answer: &Answer, slot: Option<Slot>, _now: Time) {
        let Some(slot) = slot else { return };
        if !answer.failed {
            let report = Report {
                prompt_tokens: Some(answer.prompt_tokens.into()),
                cached_tokens: Some(answer.cached_tokens.into()),
                output_tokens: Some(answer.output_tokens.into()),
            };
            self.state.report(&slot, &report);
        }
        self.state.finish(slot);
    }
}
