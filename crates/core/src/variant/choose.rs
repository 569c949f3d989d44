//! Choosing an instance for a request and counting the request there, in one step.

mod adaptive;
mod least_outstanding;
mod prefix_aware;
mod random;
mod round_robin;

use rand::Rng;

use super::{Instance, ScoreEntry, VariantState};
use crate::adaptive::Prompt;
use crate::placement::{Distance, percentile};
use crate::{
    Arm, Choice, Decision, Generation, InstanceId, ModelHash, PrefixKey, Reason, Refusal, Slot, SpillCause, Strategy,
    Time, Weight,
};

/// What choosing needs to know of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct RouteRequest<'a> {
    /// Its key, where the strategy looks at prefixes and the request has text.
    pub key: Option<PrefixKey>,
    /// The model that it names, where the API makes that a condition.
    pub model: Option<ModelHash>,
    /// Its prompt as hashes of blocks, where the strategy is `ADAPTIVE`.
    pub prompt: Option<&'a Prompt>,
    /// The instance that its session or stored response lives on; beats every strategy while that one is eligible.
    pub pinned: Option<&'a InstanceId>,
    /// The instances that it may go to at all, where not all may: the copies that hold an adapter.
    pub within: Option<&'a [InstanceId]>,
    /// The lives that failed it already.
    pub tried: &'a [Generation],
}

/// An eligible instance, by its index, and how far it stands from the front of the key's order (0 without a key).
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    index: usize,
    distance: Distance,
}

/// The weights of those among which a key chooses.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Weights {
    None,
    /// All have this one.
    One(Weight),
    Several,
}

impl Weights {
    fn note(&mut self, weight: Weight) {
        *self = match *self {
            Weights::None => Weights::One(weight),
            Weights::One(same) if same == weight => return,
            Weights::One(_) | Weights::Several => Weights::Several,
        };
    }
}

/// What a strategy picked and why.
struct Pick {
    candidate: Candidate,
    reason: Reason,
    cause: Option<SpillCause>,
}

impl Pick {
    fn new(candidate: Candidate, reason: Reason) -> Pick {
        Pick { candidate, reason, cause: None }
    }
}

impl<T: Clone> VariantState<T> {
    /// Chooses an instance and counts the request there.
    ///
    /// Every random number comes from `rng`, every point in time is `now`: the same state and arguments give the same
    /// decision.
    pub fn choose<R: Rng>(&mut self, request: &RouteRequest<'_>, now: Time, rng: &mut R) -> Result<Choice<T>, Refusal> {
        let mut candidates = std::mem::take(&mut self.candidates);
        let picked = self.find_eligible(request, now, &mut candidates).and_then(|()| {
            let arm = self.arm(request, rng);
            // Whoever decides: what the chosen instance holds tells what the request adds there.
            if let Some(prompt) = self.looked_up(request) {
                self.adaptive.look_up(prompt);
            }
            Ok((self.pick(request, &candidates, arm, now, rng)?, arm))
        });
        let choice = picked.map(|(pick, arm)| self.count(request, &candidates, &pick, arm, now));
        self.candidates = candidates;
        choice
    }

    /// Collects the instances that may be chosen at all.
    fn find_eligible(
        &self,
        request: &RouteRequest<'_>,
        now: Time,
        candidates: &mut Vec<Candidate>,
    ) -> Result<(), Refusal> {
        candidates.clear();
        let (mut in_service, mut served, mut ejected) = (false, false, 0);
        let mut weights = Weights::None;
        for (index, instance) in self.instances.iter().enumerate() {
            let allowed = request.within.is_none_or(|within| within.contains(&instance.id));
            let serves = allowed && instance.models.may_serve(request.model);
            served |= serves;
            in_service |= !instance.draining;
            if serves && !instance.draining && !instance.health.is_down() {
                let distance = request.key.map(|key| {
                    weights.note(instance.weight_at(now));
                    Distance::unweighed(key, instance.standing)
                });
                candidates.push(Candidate { index, distance: distance.unwrap_or_default() });
                ejected += usize::from(instance.health.is_ejected(now));
            }
        }
        if !in_service {
            return Err(Refusal::NoInstance);
        }
        if !served {
            return Err(Refusal::ModelNotFound);
        }
        if weights == Weights::Several {
            for Candidate { index, distance } in candidates.iter_mut() {
                *distance = distance.weighed(self.instances[*index].weight_at(now));
            }
        }
        // Suspicion that has fallen on more than half says more about the requests than about the instances.
        if ejected * 2 <= candidates.len() {
            candidates.retain(|candidate| !self.instances[candidate.index].health.is_ejected(now));
        }
        if candidates.iter().all(|candidate| self.is_tried(request, candidate)) {
            return Err(Refusal::Unavailable);
        }
        Ok(())
    }

    fn is_tried(&self, request: &RouteRequest<'_>, candidate: &Candidate) -> bool {
        request.tried.contains(&self.instances[candidate.index].generation)
    }

    fn arm<R: Rng>(&self, request: &RouteRequest<'_>, rng: &mut R) -> Arm {
        let rollout = self.routing.rollout.percent();
        if rollout == 100 {
            return Arm::Strategy;
        }
        let percentile = match request.key {
            Some(key) => percentile(key),
            None => ((u64::from(rng.next_u32()) * 100) >> 32) as u8,
        };
        if percentile < rollout { Arm::Strategy } else { Arm::Random }
    }

    fn pick<R: Rng>(
        &mut self,
        request: &RouteRequest<'_>,
        candidates: &[Candidate],
        arm: Arm,
        now: Time,
        rng: &mut R,
    ) -> Result<Pick, Refusal> {
        if let Some(candidate) = self.pinned(request, candidates) {
            let free = self.instances[candidate.index].has_room();
            return if free { Ok(Pick::new(candidate, Reason::Session)) } else { Err(Refusal::Full) };
        }
        let open = Open { instances: &self.instances, candidates, tried: request.tried, now };
        let picked = match (candidates, arm, self.routing.strategy) {
            ([only], ..) => open.iter().next().map(|_| Pick::new(*only, Reason::Single)),
            (_, Arm::Random, _) | (_, _, Strategy::Random) => random::pick(&open, rng),
            (_, _, Strategy::PrefixAware(rules)) if request.key.is_some() => prefix_aware::pick(&open, rules),
            (_, _, Strategy::Adaptive) if request.prompt.is_some() => {
                request.prompt.and_then(|prompt| adaptive::pick(&open, &mut self.adaptive, prompt, rng))
            }
            (_, _, Strategy::RoundRobin) => {
                let chosen = round_robin::pick(&open);
                chosen.inspect(|pick| self.take_turn(candidates, request.tried, pick.candidate))
            }
            (_, _, Strategy::LeastOutstandingRequests | Strategy::PrefixAware(_) | Strategy::Adaptive) => {
                let chosen = least_outstanding::pick(&open);
                self.turns += 1;
                chosen.inspect(|pick| self.instances[pick.candidate.index].turn = self.turns)
            }
        };
        let mut pick = picked.ok_or(Refusal::Full)?;
        if !request.tried.is_empty() {
            pick.reason = Reason::Retry;
        }
        Ok(pick)
    }

    /// The prompt, where the strategy looks at it.
    fn looked_up<'r>(&self, request: &RouteRequest<'r>) -> Option<&'r Prompt> {
        request.prompt.filter(|_| self.routing.strategy == Strategy::Adaptive)
    }

    fn pinned(&self, request: &RouteRequest<'_>, candidates: &[Candidate]) -> Option<Candidate> {
        let pinned = request.pinned?;
        let candidate = candidates.iter().find(|candidate| self.instances[candidate.index].id == *pinned)?;
        (!self.is_tried(request, candidate)).then_some(*candidate)
    }

    fn count(
        &mut self,
        request: &RouteRequest<'_>,
        candidates: &[Candidate],
        pick: &Pick,
        arm: Arm,
        now: Time,
    ) -> Choice<T> {
        let chosen = pick.candidate;
        let home = request.key.and_then(|_| nearest(candidates.iter().copied()));
        let home = home.map(|home| &self.instances[home.index]);
        let (home_id, home_in_flight) = home.map(|home| (home.id.clone(), home.in_flight)).unzip();
        let ahead = || candidates.iter().filter(|one| one.distance.total_cmp(&chosen.distance).is_lt()).count();
        let prompt = self.looked_up(request);
        let instance = &mut self.instances[chosen.index];
        instance.in_flight += 1;
        // What the instance holds from now on counts for later choices.
        let work = prompt.map(|prompt| self.adaptive.send(prompt, &mut instance.beliefs, now));
        let decision = Decision {
            strategy: self.routing.strategy.name(),
            arm,
            key: request.key,
            home: home_id,
            home_in_flight,
            chosen: instance.id.clone(),
            generation: instance.generation,
            in_flight: instance.in_flight,
            reason: pick.reason,
            cause: pick.cause,
            place: request.key.map(|_| ahead() as u32),
            eligible: candidates.len() as u32,
            expected_cached_tokens: work.as_ref().map(|work| work.cached as u64),
        };
        let slot = Slot { generation: instance.generation, work };
        Choice { decision, slot, instance: instance.data.clone() }
    }
}

impl<T: Clone> VariantState<T> {
    /// What `ADAPTIVE` reckons of a prompt on every instance, in the order in which they were added; which of them it
    /// would choose, exploring aside. Nothing is counted.
    pub fn scores(&mut self, request: &RouteRequest<'_>, prompt: &Prompt, now: Time) -> Vec<ScoreEntry<'_, T>> {
        let mut candidates = Vec::new();
        // Refused: nobody is eligible.
        let _ = self.find_eligible(request, now, &mut candidates);
        self.adaptive.look_up(prompt);
        let open = Open { instances: &self.instances, candidates: &candidates, tried: request.tried, now };
        let pinned = self.pinned(request, &candidates);
        let chosen = pinned.or_else(|| adaptive::best(&open, &mut self.adaptive, prompt, false));
        let chosen = chosen.map(|chosen| chosen.index);
        let views = self.instances(now).zip(&self.instances).enumerate();
        views
            .map(|(index, (view, instance))| {
                let held = self.adaptive.held(&instance.beliefs);
                ScoreEntry {
                    instance: view,
                    eligible: candidates.iter().any(|candidate| candidate.index == index),
                    chosen: chosen == Some(index),
                    held_bytes: prompt.bytes_of(held.blocks),
                    uncached_tokens: self.adaptive.uncached(prompt, held),
                    waiting_tokens: instance.beliefs.waiting.tokens(),
                    milliseconds: adaptive::score(&self.adaptive, prompt, instance, now),
                }
            })
            .collect()
    }
}

impl<T> Instance<T> {
    /// Whether its own bound allows one more request.
    fn has_room(&self) -> bool {
        self.max_in_flight.is_none_or(|max| self.in_flight < max.get())
    }

    /// Its weight, of which only a part counts for a while after it was away.
    pub(super) fn weight_at(&self, now: Time) -> Weight {
        match self.health.share(now) {
            1.0 => self.weight,
            share => Weight::new(self.weight.get() * share).unwrap_or(self.weight),
        }
    }

    /// Requests in flight on it, and what its failures count for.
    fn load(&self, now: Time) -> f64 {
        f64::from(self.in_flight) + self.health.penalty(now)
    }
}

/// The candidates that can take the request now: not tried, and below their own bound.
struct Open<'a, T> {
    instances: &'a [Instance<T>],
    candidates: &'a [Candidate],
    tried: &'a [Generation],
    now: Time,
}

impl<'a, T> Open<'a, T> {
    fn iter(&self) -> impl Iterator<Item = (Candidate, &'a Instance<T>)> {
        self.candidates.iter().filter_map(|&candidate| {
            let instance = &self.instances[candidate.index];
            let open = instance.has_room() && !self.tried.contains(&instance.generation);
            open.then_some((candidate, instance))
        })
    }
}

impl<T> Open<'_, T> {
    /// Whether two candidates are copies on one instance.
    fn are_beside(&self, one: Candidate, other: Candidate) -> bool {
        self.instances[one.index].standing.is_beside(self.instances[other.index].standing)
    }
}

/// The one that stands first in the key's order.
fn nearest(candidates: impl Iterator<Item = Candidate>) -> Option<Candidate> {
    candidates.min_by(|a, b| a.distance.total_cmp(&b.distance))
}
