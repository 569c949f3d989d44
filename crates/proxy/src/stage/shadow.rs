//! Copies of requests for a shadow variant: sent beside the real ones, their answers read and dropped. A copy never
//! holds up its request, and whatever happens to it, its client does not notice.

use std::rc::Rc;
use std::sync::Arc;

use http_body_util::BodyExt;
use isotherm_telemetry::ShadowCopy;
use tokio::sync::OwnedSemaphorePermit;

use super::admit::Admitted;
use super::decode::Decoded;
use super::finish::Record;
use super::forward::forward;
use super::place::Wish;
use super::relay::relay;
use crate::call::Target;
use crate::route::Route;
use crate::upstream::Outgoing;

/// How many copies one thread has under way; further ones are dropped.
pub(crate) const MOST_UNDER_WAY: usize = 64;

/// What a copy of this request wants of its endpoint's shadow variant; `None` where there is none, or where this request
/// is not among the share that is copied. Requests to components, and those of a session, which is known to its own
/// instance only, are not copied.
pub(super) fn wish(request: &mut Decoded, record: &Record) -> Option<Wish> {
    let call = record.call.as_ref()?;
    if call.invocation.session.is_some() || call.invocation.inference_component.is_some() {
        return None;
    }
    let topology = record.worker.fleet.topology();
    let endpoint = topology.endpoint(record.variant.as_ref()?.endpoint())?;
    let shadow = endpoint.shadow()?;
    let production: f64 = endpoint.variants().iter().map(|share| share.weight).sum();
    let random = (record.worker.random() >> 11) as f64 / (1u64 << 53) as f64;
    if random * production >= shadow.weight {
        return None;
    }
    let variant = Arc::clone(&shadow.variant);
    let production_variant = Arc::clone(variant.name());
    let target = Target { variant, production_variant, within: None, pinned: None, adapter: None };
    // A body that can't be read was refused before.
    Wish::of(target, request, record).ok()
}

/// Sends a copy, if there is room for one.
pub(super) fn send(wish: Wish, route: &Route, outgoing: &Outgoing, record: &Record) {
    let metrics = Arc::clone(wish.variant.metrics());
    let permit = Arc::clone(&record.worker.shadows).try_acquire_owned();
    let now = record.worker.now();
    let placement = wish.choose(now, record);
    let (Ok(permit), Ok(placement)) = (permit, placement) else {
        return metrics.shadow_copy(ShadowCopy::Dropped);
    };
    metrics.shadow_copy(ShadowCopy::Sent);
    let mut copy = record.of_copy(&wish.variant);
    copy.place(placement.decision.clone(), Arc::clone(&placement.instance), now);
    let admitted = Box::new(Admitted { route: route.clone(), outgoing: outgoing.clone(), wish, placement });
    tokio::task::spawn_local(serve(admitted, copy, permit));
}

async fn serve(request: Box<Admitted>, mut record: Box<Record>, _permit: OwnedSemaphorePermit) {
    let worker = Rc::clone(&record.worker);
    match forward(request, &mut record).await {
        Ok(answer) => {
            let mut body = relay(answer, record).into_body();
            while let Some(Ok(_)) = body.frame().await {}
        }
        Err(failure) => {
            let response = failure.response(record.dialect, worker.random());
            record.status = Some(response.status().as_u16());
            record.end(failure.outcome());
        }
    }
}
