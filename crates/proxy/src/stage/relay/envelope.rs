//! What SageMaker's runtime makes of an answer: its own headers, its sessions, and on streams its frames.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use isotherm_wire::eventstream::{self, StreamException};
use isotherm_wire::sagemaker::{ClosedSession, NewSession, SessionId};

use crate::call::Call;
use crate::headers::{
    self, CLOSED_SESSION_ID, CUSTOM_ATTRIBUTES, FRAMED_CONTENT_TYPE, INVOKED_VARIANT, NEW_SESSION_ID,
    SERVICE_REQUEST_ID,
};
use crate::stage::finish::Record;

/// The headers that its client sees in place of those of the container, and what they say of sessions.
pub(super) fn headers(container: HeaderMap, call: &Call, record: &Record) -> HeaderMap {
    let mut headers = match call.api.operation() {
        Some(_) => native(&container, call, record),
        None => container,
    };
    if let Some(variant) = &call.production_variant {
        headers.insert(INVOKED_VARIANT, headers::ascii(variant));
    }
    headers.insert(SERVICE_REQUEST_ID, record.request_id.clone());
    headers
}

/// The native API passes only what its model has; the type of what is in frames goes by another name.
fn native(container: &HeaderMap, call: &Call, record: &Record) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let passing = match call.is_framed() {
        true => &[(CUSTOM_ATTRIBUTES, CUSTOM_ATTRIBUTES), (CONTENT_TYPE, FRAMED_CONTENT_TYPE)][..],
        false => &[
            (CUSTOM_ATTRIBUTES, CUSTOM_ATTRIBUTES),
            (CONTENT_TYPE, CONTENT_TYPE),
            (CONTENT_LENGTH, CONTENT_LENGTH),
            (CONTENT_ENCODING, CONTENT_ENCODING),
        ],
    };
    for (from, to) in passing {
        if let Some(value) = container.get(from) {
            headers.insert(to, value.clone());
        }
    }
    if call.is_framed() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(eventstream::MEDIA_TYPE));
    }
    match &call.invocation.session {
        Some(SessionId::New) => begin(container, record, &mut headers),
        Some(SessionId::Known(id)) => close(container, id, record, &mut headers),
        None => {}
    }
    headers
}

/// Pins the session that the container has begun, and tells the client of it.
fn begin(container: &HeaderMap, record: &Record, headers: &mut HeaderMap) {
    let Some(value) = container.get(NEW_SESSION_ID) else { return };
    let session = value.to_str().ok().and_then(NewSession::parse);
    let (Some(session), Some((_, instance))) = (session, &record.placed) else { return };
    record.worker.fleet.sessions().begin(&session.id, instance, session.expires);
    headers.insert(NEW_SESSION_ID, value.clone());
}

/// Forgets the session that the container has ended, and tells the client of it.
fn close(container: &HeaderMap, id: &str, record: &Record, headers: &mut HeaderMap) {
    let Some(value) = container.get(CLOSED_SESSION_ID) else { return };
    let closed = value.to_str().ok().and_then(ClosedSession::parse);
    let (Some(_), Some((_, instance))) = (closed.filter(|closed| closed.id == id), &record.placed) else { return };
    record.worker.fleet.sessions().close(&instance.location().endpoint, id);
    headers.insert(CLOSED_SESSION_ID, value.clone());
}

/// A piece of the container's body in frames.
pub(super) fn frames(piece: &[u8]) -> Bytes {
    let mut framed = Vec::new();
    eventstream::payload_parts(piece, &mut framed);
    Bytes::from(framed)
}

/// The frame by which a stream ends that broke off.
pub(super) fn exception(kind: StreamException, message: &str) -> Bytes {
    let mut framed = Vec::new();
    eventstream::exception(kind, message, &mut framed);
    Bytes::from(framed)
}
