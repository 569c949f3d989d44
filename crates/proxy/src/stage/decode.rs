//! The third stage: the body, whole and byte for byte as it came, and what routing needs of it.

use http::request::Parts;
use isotherm_fleet::Topology;
use isotherm_wire::guard;

use super::authenticate::Authenticated;
use super::finish::Record;
use crate::call::Call;
use crate::prompt::{Form, Look, Read};
use crate::rescue::Failure;
use crate::route::Route;
use crate::upload::body_limit;

/// A request whose body is here and understood.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// What it asks for.
    pub(crate) route: Route,
    /// Its head.
    pub(crate) head: Box<Parts>,
    /// Its body and what was read from it.
    pub(crate) read: Read,
    /// Whether the client's credentials pass to the instance.
    pub(crate) credentials_pass: bool,
}

/// Reads the body and describes it.
pub(crate) async fn decode(request: Authenticated, record: &mut Record) -> Result<Decoded, Failure> {
    let Authenticated { route, head, body, credentials_pass } = request;
    let body = body.whole(body_limit(&route, &record.rules.limits), record).await?;
    if let Some(guards) = &record.rules.guards {
        guard::check(&body, guards).map_err(Failure::Excess)?;
    }
    record.call = Call::read(&route, &head.headers)?.map(Box::new);
    let look = likely_look(&record.worker.fleet.topology(), &route, record.rules.keep_trails());
    let form = Form::of(&route, &head.headers);
    let read = Read::new(body, form, look, record.rules.hash_seed).map_err(Failure::Malformed)?;
    record.model.clone_from(&read.prompt.model);
    let limit = |call: &Call| call.limit(&record.rules.timeouts, read.prompt.stream);
    record.limit = record.call.as_deref().and_then(limit);
    Ok(Decoded { route, head, read, credentials_pass })
}

/// What the first variant's strategy looks at: right for nearly every request, and corrected where it is not.
fn likely_look(topology: &Topology, route: &Route, keep_trails: bool) -> Look {
    let called = match route {
        Route::Runtime { endpoint, .. } => topology.endpoint(endpoint),
        _ => topology.default_endpoint(),
    };
    let variant = called.and_then(|endpoint| endpoint.variants().first());
    variant.map_or(Look::Nowhere, |share| Look::of(&share.variant.routing(), keep_trails))
}
