//! A request's time in the queue, as a future that may be dropped at any point.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use isotherm_core::{Refusal, RouteRequest};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::queue::Ticket;
use super::{Placement, Variant};

/// The queue holds as many requests as it may; this one is to be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("every instance is at max_in_flight, and {waiting} requests wait already")]
pub struct QueueFull {
    /// How many wait.
    pub waiting: usize,
}

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
        rng: &mut R,
        max_waiting: u32,
    ) -> Result<Waiting, QueueFull> {
        let rng = Pcg64::seed_from_u64(rng.next_u64());
        let mut guarded = variant.guarded.lock();
        let ticket = guarded.queue.join(request, rng);
        // A slot may have been freed since the caller was told that there is none.
        let placed = guarded.place_waiting(variant.clock);
        let waiting = guarded.queue.len();
        let admitted = waiting <= max_waiting as usize || !guarded.queue.is_waiting(ticket);
        if !admitted {
            guarded.queue.leave(ticket);
        }
        drop(guarded);
        placed.into_iter().for_each(Waker::wake);
        if admitted {
            Ok(Waiting { variant: Arc::clone(variant), ticket: Some(ticket) })
        } else {
            Err(QueueFull { waiting: waiting - 1 })
        }
    }
}

impl Future for Waiting {
    /// The placement; or why waiting longer is pointless, which is never [`Refusal::Full`].
    type Output = Result<Placement, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(ticket) = self.ticket else {
            // Polled again after it was ready: nobody will wake it.
            return Poll::Pending;
        };
        let outcome = self.variant.guarded.lock().queue.poll(ticket, context.waker());
        match outcome {
            Some(outcome) => {
                self.ticket = None;
                Poll::Ready(outcome.map(|choice| Placement::of(&self.variant, choice)))
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
