//! The way of a request: one function that calls the stages in order.
//!
//! accept → authenticate → decode → place → admit → forward → inspect → relay; finish runs when the record is dropped, however
//! the way ends.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use isotherm_wire::error::Dialect;

use crate::answer::Body;
use crate::asynchronous;
use crate::connection::Incoming;
use crate::headers::{REQUEST_ID, SERVICE_REQUEST_ID};
use crate::rescue::Failure;
use crate::route::{Route, RuntimeApi, dialect_of};
use crate::stage::accept::accept;
use crate::stage::admit::admit;
use crate::stage::authenticate::authenticate;
use crate::stage::decode::decode;
use crate::stage::finish::Record;
use crate::stage::forward::{Forwarded, forward};
use crate::stage::inspect::inspect;
use crate::stage::place::place;
use crate::stage::relay::{expose_decision, relay};
use crate::stop::Phase;
use crate::worker::Worker;
use crate::{aws, own};

/// What came of a request.
enum Outcome {
    /// The router's own answer.
    Own(Response<Bytes>),
    /// An instance's answer, begun.
    Begun(Box<Forwarded>),
}

/// Answers a request; tells, too, whether its body was read.
///
/// Protocols move about what they are given to wait for, so that is little: what a request needs on its way stands in
/// memory of its own.
pub(crate) fn serve(
    head: Box<Parts>,
    body: Incoming,
    client: SocketAddr,
    worker: Rc<Worker>,
) -> impl Future<Output = (Response<Body>, bool)> {
    let dialect = dialect_of(head.uri.path());
    let record = Record::begin(Rc::clone(&worker), Some(client), &head);
    let way = Box::pin(answer(head, body, record));
    async move {
        contained(way).await.unwrap_or_else(|| {
            let failed = Failure::Internal.response(dialect, worker.random());
            (failed.map(Body::Whole), false)
        })
    }
}

/// Keeps a fault on the way of one request to that request: `None` when it panicked.
async fn contained<T>(way: impl Future<Output = T>) -> Option<T> {
    let mut way = pin!(way);
    std::future::poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| way.as_mut().poll(context)));
        polled.map_or_else(|_| Poll::Ready(None), |polled| polled.map(Some))
    })
    .await
}

async fn answer(head: Box<Parts>, body: Incoming, mut record: Box<Record>) -> (Response<Body>, bool) {
    let worker = Rc::clone(&record.worker);
    let outcome = {
        let mut way = pin!(run(head, body, &mut record));
        // Whoever polls this is woken when the phase changes.
        std::future::poll_fn(|context| match way.as_mut().poll(context) {
            Poll::Pending if worker.stop.phase() >= Phase::Truncating => Poll::Ready(Err(Failure::Stopping)),
            polled => polled,
        })
        .await
    };
    let body_was_read = record.body_was_read;
    let response = match outcome {
        Ok(Outcome::Begun(forwarded)) => return (relay(*forwarded, record).map(Body::Relayed), body_was_read),
        Ok(Outcome::Own(response)) => response,
        Err(failure) => {
            let failure = failure.of_call(&mut record);
            let response = match record.aws {
                Some(protocol) => failure.service_response(protocol, &record.request_id),
                None => failure.response(record.dialect, worker.random()),
            };
            record.status = Some(response.status().as_u16());
            record.bytes_out = response.body().len() as u64;
            record.end(failure.outcome());
            response
        }
    };
    let mut response = response.map(Body::Whole);
    response.headers_mut().insert(REQUEST_ID, record.request_id.clone());
    if matches!(record.dialect, Dialect::SageMaker | Dialect::SageMakerOpenAi) {
        response.headers_mut().insert(SERVICE_REQUEST_ID, record.request_id.clone());
    }
    expose_decision(response.headers_mut(), &record);
    (response, body_was_read)
}

/// The stages. What few requests need stands in memory of its own, so that the others do without that room.
async fn run(head: Box<Parts>, body: Incoming, record: &mut Record) -> Result<Outcome, Failure> {
    let accepted = accept(head, body, record)?;
    let authenticated = authenticate(accepted, record).await?;
    if let Some(own) = own::answer(&authenticated.route, record) {
        return own.map(Outcome::Own);
    }
    if let Route::Aws(_) = authenticated.route {
        return Box::pin(aws::answer(authenticated, record)).await.map(Outcome::Own);
    }
    let decoded = decode(authenticated, record).await?;
    if let Route::Runtime { api: RuntimeApi::Async, .. } = decoded.route {
        return Box::pin(asynchronous::accept(decoded, record)).await.map(Outcome::Own);
    }
    let placed = place(decoded, record)?;
    let admitted = admit(placed, record).await?;
    let forwarded = forward(admitted, record).await?;
    let forwarded = match record.call {
        Some(_) => Box::pin(inspect(forwarded, record)).await?,
        None => forwarded,
    };
    Ok(Outcome::Begun(Box::new(forwarded)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_on_the_way_ends_that_way_only() {
        struct Dropped<'d>(&'d std::cell::Cell<bool>);
        impl Drop for Dropped<'_> {
            fn drop(&mut self) {
                self.0.set(std::thread::panicking());
            }
        }
        let dropped_in_panic = std::cell::Cell::new(false);
        let way = async {
            let _guard = Dropped(&dropped_in_panic);
            tokio::task::yield_now().await;
            panic!("a fault on the way")
        };
        assert!(contained(way).await.is_none());
        assert!(dropped_in_panic.get(), "guards see that it was a panic");
        assert_eq!(contained(async { 1 }).await, Some(1));
    }
}
