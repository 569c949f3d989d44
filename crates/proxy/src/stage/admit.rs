//! The fifth stage, only for a request whose instances are all full: it waits for room in a bounded queue, or is shed.

use std::pin::pin;
use std::time::Duration;

use isotherm_core::Time;
use isotherm_fleet::{Bounds, LONGEST_FOR_HOME, NotPlaced, Placement, Rank, Waiting};
use isotherm_telemetry::{ClientStage, ShedCause};
use tokio::time::error::Elapsed;

use super::finish::Record;
use super::place::{Placed, Unplaced, Wish};
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
pub(crate) async fn admit(request: Placed, record: &mut Record) -> Result<Box<Admitted>, Failure> {
    match request {
        Placed::At(admitted) => Ok(admitted),
        Placed::Before(unplaced) => Box::pin(wait(*unplaced, record)).await,
    }
}

async fn wait(mut request: Unplaced, record: &mut Record) -> Result<Box<Admitted>, Failure> {
    record.stage = ClientStage::Queue;
    let begun = record.worker.now();
    let (limit, deadline) = limit(record.rules.limits.queue.timeout, begun, record);
    loop {
        let outcome = in_queue(&request.wish, request.request.read.body.len() as u64, begun, limit, record).await;
        record.queued = Some(record.worker.now().since(begun));
        let shed = |cause, failure| {
            request.wish.variant.metrics().shed(cause);
            Err(failure)
        };
        let placement = match (outcome, deadline) {
            (Ok(Ok(placement)), _) => Some(placement),
            // A deployment took the variant away: what has come in its place serves the request.
            (Ok(Err(NotPlaced::Refused(_))), _) if !request.wish.is_served(record) => request.seek_again(record)?,
            // It took the variant's traffic away, and will take the variant.
            (Ok(Err(NotPlaced::Moved)), _) => request.seek_again(record)?,
            (Ok(Err(NotPlaced::Refused(refusal))), _) => return Err(request.wish.refused(refusal, record)),
            (Ok(Err(NotPlaced::Displaced)), _) => return shed(ShedCause::QueueFull, Failure::QueueFull),
            (Err(_), None) => return shed(ShedCause::QueueTimeout, Failure::QueueTimeout(limit)),
            (Err(_), Some(within)) => return shed(ShedCause::Deadline, Failure::DeadlineInQueue(within)),
        };
        if let Some(placement) = placement {
            return Ok(request.at(placement, record.worker.now(), record));
        }
    }
}

/// Waits in the queue of one variant, until so long after the beginning.
async fn in_queue(
    wish: &Wish,
    bytes: u64,
    begun: Time,
    limit: Duration,
    record: &Record,
) -> Result<Result<Placement, NotPlaced>, Elapsed> {
    let queue = &record.rules.limits.queue;
    let bounds = Bounds { waiting: queue.max_waiting, bytes: queue.max_bytes };
    let tenant = record.principal.as_ref().map(|holder| holder.tenant());
    let rank = Rank { priority: wish.priority, tenant, bytes };
    let waiting = record.worker.with_random(|random| wish.variant.wait(&wish.request(&[]), rank, random, bounds));
    let left = (begun + limit).since(record.worker.now());
    tokio::time::timeout(left, at_home_or_elsewhere(waiting)).await
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
