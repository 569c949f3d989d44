//! What the rules of others count: who serves, and how much each has before it.

use std::collections::HashMap;

use isotherm_core::InstanceId;

use super::{Answer, Routed};
use crate::prompt::mix;

/// The instances in service with their requests in flight and the prompt tokens that they have still to compute.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Numbers of the instances in service, ascending.
    serving: Vec<u32>,
    /// By the instance's number.
    loads: Vec<Load>,
    /// Where each request in flight is, and its tokens that are not computed yet.
    requests: HashMap<u32, (u32, u64)>,
}

/// What one instance has before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) in_flight: u32,
    /// Tokens of prompts without a first token, without what was believed to be cached.
    pub(super) uncached_tokens: u64,
    name: u64,
}

impl Tally {
    pub(super) fn add(&mut self, instance: u32, id: &InstanceId) {
        if self.loads.len() <= instance as usize {
            self.loads.resize(instance as usize + 1, Load::default());
        }
        let name = id.as_str().bytes().fold(0, |name, byte| mix(name ^ u64::from(byte)));
        self.loads[instance as usize] = Load { name, ..Load::default() };
        if let Err(place) = self.serving.binary_search(&instance) {
            self.serving.insert(place, instance);
        }
    }

    pub(super) fn drain(&mut self, instance: u32) {
        self.serving.retain(|serving| *serving != instance);
    }

    pub(super) fn remove(&mut self, instance: u32) {
        self.drain(instance);
        self.requests.retain(|_, request| request.0 != instance);
    }

    pub(super) fn load(&self, instance: u32) -> Load {
        self.loads[instance as usize]
    }

    /// Where a request can go.
    pub(super) fn open<'t>(&'t self, request: &'t Routed<'_>) -> impl Iterator<Item = u32> + Clone + 't {
        self.serving.iter().copied().filter(|instance| !request.tried.contains(instance))
    }

    /// Numbers of all instances in service.
    pub(super) fn serving(&self) -> &[u32] {
        &self.serving
    }

    /// A number for an instance and a key: the order of these numbers is the key's own order of the instances.
    pub(super) fn rank(&self, key: u64, instance: u32) -> u64 {
        mix(key ^ self.load(instance).name)
    }

    /// The one with the fewest requests in flight; among equals the key decides.
    pub(super) fn least_loaded(&self, key: u64, instances: impl Iterator<Item = u32>) -> Option<u32> {
        instances.min_by_key(|&instance| (self.load(instance).in_flight, self.rank(key, instance)))
    }

    pub(super) fn count(&mut self, number: u32, instance: u32, uncached_tokens: u64) {
        let load = &mut self.loads[instance as usize];
        load.in_flight += 1;
        load.uncached_tokens += uncached_tokens;
        self.requests.insert(number, (instance, uncached_tokens));
    }

    /// The prompt is computed.
    pub(super) fn first_token(&mut self, answer: &Answer) {
        if let Some((instance, uncached_tokens)) = self.requests.get_mut(&answer.number) {
            self.loads[*instance as usize].uncached_tokens -= std::mem::take(uncached_tokens);
        }
    }

    pub(super) fn finish(&mut self, answer: &Answer) {
        if let Some((instance, uncached_tokens)) = self.requests.remove(&answer.number) {
            let load = &mut self.loads[instance as usize];
            load.in_flight -= 1;
            load.uncached_tokens -= uncached_tokens;
        }
    }
}
