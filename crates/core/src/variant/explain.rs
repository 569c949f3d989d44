//! What a variant looks like from outside: for listings, and for the full order of a key.

use std::num::NonZeroU32;

use super::VariantState;
use crate::placement::Distance;
use crate::{Availability, Generation, InstanceId, ModelHash, PrefixKey, Time, Weight};

/// One instance as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceView<'a, T> {
    /// Its stable name.
    pub id: &'a InstanceId,
    /// Its present life.
    pub generation: Generation,
    /// Its share relative to the others.
    pub weight: Weight,
    /// Its own bound.
    pub max_in_flight: Option<NonZeroU32>,
    /// Requests in flight on it.
    pub in_flight: u32,
    /// Whether it may be chosen.
    pub availability: Availability,
    /// What the caller keeps with it.
    pub data: &'a T,
}

/// One place in a key's order of instances.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderEntry<'a, T> {
    /// The instance.
    pub instance: InstanceView<'a, T>,
    /// Whether it may be chosen for this request: up, and serving the model.
    pub eligible: bool,
}

/// What `ADAPTIVE` reckons of a prompt on an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreEntry<'a, T> {
    /// The instance.
    pub instance: InstanceView<'a, T>,
    /// Whether it may be chosen for this request.
    pub eligible: bool,
    /// Whether it would be chosen.
    pub chosen: bool,
    /// How much of the prompt's beginning it is believed to hold, in bytes.
    pub held_bytes: u64,
    /// Tokens of the prompt that it would have to compute.
    pub uncached_tokens: f64,
    /// Tokens that it has to compute before: those of requests that were sent there and have no first token yet.
    pub waiting_tokens: f64,
    /// The latency in milliseconds that the request would add there, to itself and to the others.
    pub milliseconds: f64,
}

impl<T: Clone> VariantState<T> {
    /// Every instance, in the order in which they were added.
    pub fn instances(&self, now: Time) -> impl Iterator<Item = InstanceView<'_, T>> {
        self.instances.iter().map(move |instance| InstanceView {
            id: &instance.id,
            generation: instance.generation,
            weight: instance.weight,
            max_in_flight: instance.max_in_flight,
            in_flight: instance.in_flight,
            availability: Availability::of(&instance.health, instance.draining, now),
            data: &instance.data,
        })
    }

    /// Every instance in the order of a key, the eligible ones and the others alike.
    pub fn order(&self, key: PrefixKey, model: Option<ModelHash>, now: Time) -> Vec<OrderEntry<'_, T>> {
        let mut entries: Vec<_> = self
            .instances(now)
            .zip(&self.instances)
            .map(|(view, instance)| {
                let serves = instance.models.may_serve(model);
                let eligible = serves && view.availability == Availability::Up;
                (Distance::of(key, instance.standing, instance.weight_at(now)), OrderEntry { instance: view, eligible })
            })
            .collect();
        entries.sort_by(|a, b| a.0.total_cmp(&b.0));
        entries.into_iter().map(|(_, entry)| entry).collect()
    }
}
