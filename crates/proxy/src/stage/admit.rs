//! The fifth stage, only for a request whose instances are all full: it waits for room in a bounded queue, or is shed.

use std::time::Duration;

use isotherm_core::Time;
use isotherm_fleet::Placement;
use isotherm_telemetry::{ClientStage, ShedCause};

use super::finish::Record;
use super::place::{Placed, Wish};
use crate::rescue::Failure;
use crate::route::Route;
use crate::upstream::Outgoing;

/// A request that has its place.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// What it asks for.
    pub(crate) route: Route,
    /// What will be sent.
    pub(crate) outgoing: Outgoing,
    /// What it wants, should it need another place.
    pub(crate) wish: Wish,
    /// Its place.
    pub(crate) placement: Placement,
}

/// Waits for room where there is none.
pub(crate) async fn admit(request: Placed, record: &mut Record) -> Result<Admitted, Failure> {
    let Placed { route, outgoing, wish, placement } = request;
    let placement = match placement {
        Some(placement) => placement,
        None => wait(&wish, record).await?,
    };
    record.place(placement.decision.clone(), std::sync::Arc::clone(&placement.instance));
    Ok(Admitted { route, outgoing, wish, placement })
}

async fn wait(wish: &Wish, record: &mut Record) -> Result<Placement, Failure> {
    record.stage = ClientStage::Queue;
    let begun = record.worker.now();
    let queue = record.rules.limits.queue.clone();
    let joined = record.worker.with_random(|random| wish.variant.wait(&wish.request(&[]), random, queue.max_waiting));
    let shed = |cause, failure| {
        wish.variant.metrics().shed(cause);
        Err(failure)
    };
    let Ok(waiting) = joined else { return shed(ShedCause::QueueFull, Failure::QueueFull) };
    let (limit, deadline) = limit(queue.timeout, begun, record);
    let waited = tokio::time::timeout(limit, waiting).await;
    record.queued = Some(record.worker.now().since(begun));
    match (waited, deadline) {
        (Ok(Ok(placement)), _) => Ok(placement),
        (Ok(Err(refusal)), _) => Err(wish.refused(refusal, record)),
        (Err(_), None) => shed(ShedCause::QueueTimeout, Failure::QueueTimeout(limit)),
        (Err(_), Some(total)) => shed(ShedCause::Deadline, Failure::DeadlineInQueue(total)),
    }
}

/// How long it may wait; and the time for the whole request, where that ends first.
fn limit(longest: Duration, now: Time, record: &Record) -> (Duration, Option<Duration>) {
    let left = record.deadline().map(|deadline| deadline.since(now));
    match left {
        Some(left) if left < longest => (left, record.total()),
        _ => (longest, None),
    }
}
