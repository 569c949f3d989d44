//! The sixth stage: sends the request to its instance, and to another one only under the retry rules.
//!
//! | what happened | what follows |
//! |---|---|
//! | no connection | the next in order: nothing was sent, so that is no resend |
//! | a reused connection broke before any byte of a response | a fresh one to the same instance, once; then as below |
//! | 5xx, 429, or a broken connection before the first byte of the body | one resend to the next in order, within the budget |
//! | the same once several instances have died on exactly this request | nothing: it may be what kills them |
//! | a time-out, another 4xx, anything after the first byte | nothing: it might generate twice, or change nothing |
//! | any of these once the client's deadline has passed | nothing: it has no use for the answer |

mod attempt;
mod held;
mod suspicion;

use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use isotherm_core::{Evidence, Generation};
use isotherm_fleet::Placement;
use isotherm_telemetry::{RetryKind, UpstreamErrorKind};

pub(crate) use self::attempt::Miss;
use self::attempt::{Attempt, MissKind};
pub(crate) use self::held::Held;
use self::suspicion::Suspicion;
use super::admit::Admitted;
use super::finish::Record;
use super::place::Wish;
use crate::rescue::Failure;
use crate::route::Route;

/// A request whose answer has begun.
#[derive(Debug)]
pub(crate) struct Forwarded {
    /// What it asks for.
    pub(crate) route: Route,
    /// The answer's head, and its body as far as it has come.
    pub(crate) held: Box<Held>,
    /// Counts the request on its instance.
    pub(crate) placement: Placement,
}

/// Sends the request until an instance answers, or nothing more may be tried.
pub(crate) async fn forward(mut request: Box<Admitted>, record: &mut Record) -> Result<Forwarded, Failure> {
    let Admitted { outgoing, wish, placement, .. } = &mut *request;
    let mut suspicion = Suspicion::of(outgoing, record)?;
    let mut attempts = Attempts { wish, tried: Vec::new(), resent: false };
    loop {
        let outcome = Attempt { outgoing, placement, record: &mut *record }.run().await;
        observe(placement, &outcome, record);
        suspicion.note(placement, &outcome, record);
        let next = match &outcome {
            Ok(held) if !held.may_be_resent() => None,
            Err(miss) if miss.kind.ends_the_request() || (miss.sent && suspicion.is_strong(record)) => None,
            Err(Miss { kind: MissKind::Connect(_), sent: false }) => attempts.next(placement, record),
            Ok(_) | Err(_) => attempts.resend(placement, record),
        };
        match (next, outcome) {
            (Some(next), _) => *placement = next,
            (None, Ok(held)) => {
                let Admitted { route, placement, .. } = *request;
                return Ok(Forwarded { route, held, placement });
            }
            (None, Err(miss)) => return Err(miss.failure(record)),
        }
    }
}

/// What was tried, and what may still be.
struct Attempts<'w> {
    wish: &'w Wish,
    tried: Vec<Generation>,
    /// Whether the one resend was used.
    resent: bool,
}

impl Attempts<'_> {
    /// The next place in order.
    fn next(&mut self, failed: &Placement, record: &mut Record) -> Option<Placement> {
        let next = self.choose(failed, record)?;
        record.retry(RetryKind::Connect);
        record.place(next.decision.clone(), Arc::clone(&next.instance), record.worker.now());
        Some(next)
    }

    /// The next place in order, if the request may be sent once more.
    fn resend(&mut self, failed: &Placement, record: &mut Record) -> Option<Placement> {
        if self.resent {
            return None;
        }
        let next = self.choose(failed, record)?;
        if !self.wish.variant.withdraw_resend(record.worker.now()) {
            self.wish.variant.metrics().resend_refused();
            return None;
        }
        self.resent = true;
        record.retry(RetryKind::Resend);
        record.place(next.decision.clone(), Arc::clone(&next.instance), record.worker.now());
        Some(next)
    }

    fn choose(&mut self, failed: &Placement, record: &Record) -> Option<Placement> {
        if record.room_within.is_some_and(|within| record.arrived + within <= record.worker.now()) {
            return None;
        }
        self.tried.push(failed.decision.generation);
        let worker = Rc::clone(&record.worker);
        let request = self.wish.request(&self.tried);
        worker.with_random(|random| self.wish.variant.choose(&request, worker.now(), random)).ok()
    }
}

/// Tells fleet and metrics what the attempt says about the instance.
fn observe(placement: &Placement, outcome: &Result<Box<Held>, Miss>, record: &Record) {
    let now = match outcome {
        Ok(held) => held.heard,
        Err(_) => record.worker.now(),
    };
    let (evidence, error) = match outcome {
        Ok(held) if held.status() == StatusCode::TOO_MANY_REQUESTS => {
            (Some(Evidence::RequestShed), Some(UpstreamErrorKind::TooManyRequests))
        }
        Ok(held) if held.status().is_server_error() => {
            let kind =
                if held.is_error_event() { UpstreamErrorKind::ErrorEvent } else { UpstreamErrorKind::ServerError };
            (Some(Evidence::RequestFailed), Some(kind))
        }
        Ok(_) => (Some(Evidence::RequestAnswered), None),
        Err(miss) => (miss.kind.evidence(), Some(miss.kind.error())),
    };
    if let Some(evidence) = evidence {
        let generation = placement.decision.generation;
        placement.slot.variant().observe(generation, evidence, now);
    }
    if let Some(error) = error {
        placement.instance.metrics().upstream_error(error);
    }
}
