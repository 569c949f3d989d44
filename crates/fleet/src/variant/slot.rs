//! The guard that gives a request's slot back: exactly once, however the request ends.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use isotherm_core::{Choice, Report, Slot};
use isotherm_telemetry::InstanceMetrics;

use super::{Placement, Variant};
use crate::Instance;

/// Counts a request as in flight on its instance until it is dropped; then whoever waited longest gets the room.
#[must_use = "dropping the guard ends the request's count"]
pub struct SlotGuard {
    variant: Arc<Variant>,
    metrics: Arc<InstanceMetrics>,
    /// Taken when the guard is dropped.
    slot: Option<Slot>,
}

impl SlotGuard {
    /// The variant that the request was placed in.
    pub fn variant(&self) -> &Arc<Variant> {
        &self.variant
    }

    /// Notes that the request's first token has come; `ADAPTIVE` learns from it.
    pub fn first_token(&mut self) {
        let Some(slot) = self.slot.as_mut().filter(|slot| slot.is_learned_from()) else { return };
        self.variant.guarded.lock().state.first_token(slot, self.variant.clock.now());
    }

    /// Notes that the whole answer has come at once, so that nobody knows when its first token did.
    pub fn answered(&mut self) {
        let Some(slot) = self.slot.as_mut().filter(|slot| slot.is_learned_from()) else { return };
        self.variant.guarded.lock().state.answered(slot);
    }

    /// Notes what the engine reported of the request; `ADAPTIVE` learns from it.
    pub fn report(&self, report: &Report) {
        let Some(slot) = self.slot.as_ref().filter(|slot| slot.is_learned_from()) else { return };
        self.variant.guarded.lock().state.report(slot, report);
    }
}

impl fmt::Debug for SlotGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotGuard").field("variant", &self.variant).field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.metrics.in_flight().dec();
            self.variant.give_back(slot);
        }
    }
}

impl Placement {
    pub(super) fn of(variant: &Arc<Variant>, choice: Choice<Arc<Instance>>) -> Placement {
        let metrics = Arc::clone(choice.instance.metrics());
        metrics.in_flight().inc();
        let slot = SlotGuard { variant: Arc::clone(variant), metrics, slot: Some(choice.slot) };
        Placement { decision: choice.decision, instance: choice.instance, slot }
    }
}

impl Variant {
    pub(super) fn give_back(&self, slot: Slot) {
        let mut guarded = self.guarded.lock();
        let freed = guarded.state.finish(slot);
        let placed = if freed { guarded.place_waiting(self.clock) } else { Vec::new() };
        drop(guarded);
        placed.into_iter().for_each(Waker::wake);
    }
}
