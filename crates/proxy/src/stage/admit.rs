//! The fifth stage, only for a request whose instances are all full: it waits for room in a bounded queue, or is shed.

use std::pin::pin;
use std::time::Duration;

use isotherm_core::Time;
use isotherm_fleet::{Bounds, LONGEST_FOR_HOME, NotPlaced, Placement, Rank, Waiting};
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
        None => wait(&wish, outgoing.body.len() as u64, record).await?,
    };
    record.place(placement.decision.clone(), std::sync::Arc::clone(&placement.instance));
    Ok(Admitted { route, outgoing, wish, placement })
}

async fn wait(wish: &Wish, bytes: u64, record: &mut Record) -> Result<Placement, Failure> {
    record.stage = ClientStage::Queue;
    let begun = record.worker.now();
    let queue = record.rules.limits.queue.clone();
    let bounds = Bounds { waiting: queue.max_waiting, bytes: queue.max_bytes };
    let tenant = record.principal.as_ref().map(|holder| holder.tenant());
    let rank = Rank { priority: wish.priority, tenant, bytes };
    let waiting = record.worker.with_random(|random| wish.variant.wait(&wish.request(&[]), rank, random, bounds));
    let shed = |cause, failure| {
        wish.variant.metrics().shed(cause);
        Err(failure)
    };
    let (limit, deadline) = limit(queue.timeout, begun, record);
    let waited = tokio::time::timeout(limit, at_home_or_elsewhere(waiting)).await;
    record.queued = Some(record.worker.now().since(begun));
    match (waited, deadline) {
        (Ok(Ok(placement)), _) => Ok(placement),
        (Ok(Err(NotPlaced::Refused(refusal))), _) => Err(wish.refused(refusal, record)),
        (Ok(Err(NotPlaced::Displaced)), _) => shed(ShedCause::QueueFull, Failure::QueueFull),
        (Err(_), None) => shed(ShedCause::QueueTimeout, Failure::QueueTimeout(limit)),
        (Err(_), Some(within)) => shed(ShedCause::Deadline, Failure::DeadlineInQueue(within)),
    }
}

/// Waits for room: first for that at home, then for any.
async fn at_home_or_elsewhere(waiting: Waiting) -> Result<Placement, NotPlaced> {
    let mut waiting = pin!(waiting);
    if let Ok(outcome) = tokio::time::timeout(LONGEST_FOR_HOME, &mut waiting).await {
        return outcome;
    }
    waiting.look_elsewhere();
    waiting.await
}

/// How long it may wait; and what its client or the rules give it from its arrival on, where that ends first.
fn limit(longest: Duration, now: Time, record: &Record) -> (Duration, Option<Duration>) {
    let within = [record.total(), record.room_within].into_iter().flatten().min();
    let left = within.map(|within| ((record.arrived + within).since(now), within));
    match left {
        Some((left, within)) if left < longest => (left, Some(within)),
        _ => (longest, None),
    }
}
