//! `SESSION_HASH`: every session has its instance, whatever it sends and however busy that one is.

use isotherm_core::{InstanceId, Reason, Refusal, Slot, Time};
use rand_pcg::Pcg64;

use super::tally::Tally;
use super::{Answer, Placed, Routed, Router};
use crate::prompt::mix;

#[derive(Debug, Default)]
pub(crate) struct SessionHash {
    tally: Tally,
}

impl Router for SessionHash {
    fn add(&mut self, instance: u32, id: &InstanceId, _now: Time) {
        self.tally.add(instance, id);
    }

    fn drain(&mut self, instance: u32, _now: Time) {
        self.tally.drain(instance);
    }

    fn remove(&mut self, instance: u32, _now: Time) {
        self.tally.remove(instance);
    }

    fn choose(&mut self, request: &Routed<'_>, _now: Time, _rng: &mut Pcg64) -> Result<Placed, Refusal> {
        let session = mix(request.request.session.0);
        let first = self.tally.open(request).min_by_key(|&instance| self.tally.rank(session, instance));
        Ok(Placed { instance: first.ok_or(Refusal::Unavailable)?, reason: Reason::Session, slot: None })
    }

    fn finish(&mut self, _answer: &Answer, _slot: Option<Slot>, _now: Time) {}
}
