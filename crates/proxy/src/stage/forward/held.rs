//! An answer whose head is held until the first byte of its body, so that a failure until then is still known as one.
//!
//! Engines send `200` before they have computed anything and put errors into the first event of the stream. Held until
//! that event is whole, such an error becomes the status that was meant, and may be tried elsewhere.

use std::collections::VecDeque;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use isotherm_core::Time;
use isotherm_fleet::Instance;
use isotherm_wire::sse::FirstEvent;

use crate::upstream::{BodyError, ResponseBody};
use crate::watch::Watch;

/// The most bytes that are held for a first event to be whole: comments, and an event of a sensible length.
const MOST_HELD: usize = 128 * 1024;

/// An answer, begun but not passed on.
#[derive(Debug)]
pub(crate) struct Held {
    status: StatusCode,
    /// Its headers.
    pub(crate) headers: HeaderMap,
    /// The pieces that came already.
    pub(crate) pieces: VecDeque<Bytes>,
    /// The rest; `None` when the answer was made from an error event.
    pub(crate) body: Option<ResponseBody>,
    /// What was noted of the pieces, and goes on with the rest.
    pub(crate) watch: Watch,
    /// When the last of it came.
    pub(crate) heard: Time,
}

impl Held {
    /// Waits for the first byte of a body, or for its end; of a stream of events, for the first event.
    pub(super) async fn hold(
        status: StatusCode,
        headers: HeaderMap,
        mut body: ResponseBody,
        instance: &Instance,
    ) -> Result<Box<Held>, BodyError> {
        let mut watch = Watch::of(&headers);
        let (mut pieces, mut length) = (VecDeque::new(), 0);
        let mut heard = body.heard();
        instance.note_byte(heard);
        while let Some(piece) = std::future::poll_fn(|context| body.poll_next(context)).await.transpose()? {
            heard = body.heard();
            instance.note_byte(heard);
            watch.scan(&piece);
            length += piece.len();
            pieces.push_back(piece);
            if length > MOST_HELD || !is_before_first_event(&watch) {
                break;
            }
        }
        if body.has_ended() {
            watch.end();
        }
        // Handed on by many.
        let mut held = Box::new(Held { status, headers, pieces, body: Some(body), watch, heard });
        if status.is_success() {
            held.turn_error_event_into_answer();
        }
        Ok(held)
    }

    /// The status that the client will see.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Whether it was the first event of a stream.
    pub(super) fn is_error_event(&self) -> bool {
        self.body.is_none()
    }

    /// Whether another instance may do better (retry rules).
    pub(super) fn may_be_resent(&self) -> bool {
        self.status.is_server_error() || self.status == StatusCode::TOO_MANY_REQUESTS
    }

    fn turn_error_event_into_answer(&mut self) {
        let Watch::Events(scanner) = &self.watch else { return };
        let FirstEvent::Error(error) = scanner.first_event() else { return };
        let data = Bytes::copy_from_slice(&error.data);
        self.status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let is_json = data.trim_ascii_start().starts_with(b"{");
        let media_type = if is_json { "application/json" } else { "text/plain; charset=utf-8" };
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        self.headers.insert(CONTENT_LENGTH, HeaderValue::from(data.len()));
        self.headers.remove(CONTENT_ENCODING);
        self.headers.remove(http::header::CACHE_CONTROL);
        self.pieces = VecDeque::from([data]);
        self.body = None;
        self.watch = Watch::Opaque;
    }
}

fn is_before_first_event(watch: &Watch) -> bool {
    match watch {
        Watch::Events(scanner) => matches!(scanner.first_event(), FirstEvent::Awaited | FirstEvent::Begun),
        Watch::Json(_) | Watch::JsonInPieces(_) | Watch::Opaque => false,
    }
}
