//! A request's time in the queue, as a future that may be dropped at any point.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use isotherm_core::RouteRequest;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::queue::{Bounds, NotPlaced, Outcome, Rank, Ticket};
use super::{Placement, Variant};

/// A place in the queue; see [`Variant::wait`].
#[derive(Debug)]
#[must_use = "dropping it leaves the queue"]
pub struct Waiting {
    variant: Arc<Variant>,
    /// `None` once the outcome was fetched.
    ticket: Option<Ticket>,
}

impl Waiting {
    pub(super) fn join<R: Rng>(
        variant: &Arc<Variant>,
        request: &RouteRequest<'_>,
        rank: Rank<'_>,
        rng: &mut R,
        bounds: Bounds,
    ) -> Waiting {
        let rng = Pcg64::seed_from_u64(rng.next_u64());
        let mut guarded = variant.guarded.lock();
        let ticket = guarded.queue.join(request, rank, variant.clock.now(), rng);
        // A slot may have been freed since the caller was told that there is none.
        let placed = guarded.place_waiting(variant.clock);
        let displaced = guarded.queue.displace(bounds);
        drop(guarded);
        placed.into_iter().chain(displaced).for_each(Waker::wake);
        Waiting { variant: Arc::clone(variant), ticket: Some(ticket) }
    }

    /// Takes room anywhere, if there is any, once it has waited for its home for [`LONGEST_FOR_HOME`]: to be called then,
    /// since nothing else happens at that moment.
    ///
    /// [`LONGEST_FOR_HOME`]: crate::LONGEST_FOR_HOME
    pub fn look_elsewhere(&self) {
        self.variant.change(|_| ());
    }

    fn outcome(&self, outcome: Outcome) -> Result<Placement, NotPlaced> {
        outcome.map(|choice| Placement::of(&self.variant, choice))
    }
}

impl Variant {
    /// Ends the waiting of all who wait for room here, so that they look again where they lead.
    pub(crate) fn move_waiting_on(&self) {
        let wakers = self.guarded.lock().queue.move_on();
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Future for Waiting {
    /// The placement; or why waiting came to nothing.
    type Output = Result<Placement, NotPlaced>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(ticket) = self.ticket else {
            // Polled again after it was ready: nobody will wake it.
            return Poll::Pending;
        };
        let outcome = self.variant.guarded.lock().queue.poll(ticket, context.waker());
        match outcome {
            Some(outcome) => {
                self.ticket = None;
                Poll::Ready(self.outcome(outcome))
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let outcome = self.variant.guarded.lock().queue.leave(ticket);
            // It was given a slot that it never fetched: that goes to the next.
            if let Some(Ok(choice)) = outcome {
                self.variant.give_back(choice.slot);
            }
        }
    }
}
