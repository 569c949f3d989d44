//! The seventh stage: passes the answer on, every piece as it comes, and notes first token, usage and id on the side.

mod envelope;
mod own_usage;

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use isotherm_core::{Report, Time};
use isotherm_fleet::{Placement, SlotGuard};
use isotherm_telemetry::{ClientStage, InvocationFault, Outcome, UpstreamErrorKind};
use isotherm_wire::api::Api;
use isotherm_wire::error::{ErrorBody, ErrorKind};
use isotherm_wire::eventstream::StreamException;

use self::own_usage::OwnUsage;
use super::finish::Record;
use super::forward::{Forwarded, Held};
use super::trace::diagnosis;
use crate::headers::{self, CACHE_DIAGNOSTICS, HOME, INSTANCE, KEY, REASON, REQUEST_ID};
use crate::route::Route;
use crate::stop::Phase;
use crate::upstream::ResponseBody;
use crate::watch::Watch;

/// An answer under way to its client.
#[derive(Debug)]
pub(crate) struct Relay {
    /// Pieces that came while the head was held, and at last what the router itself has to say.
    pieces: VecDeque<Bytes>,
    /// The rest of the body; `None` when it has ended or broken off.
    body: Option<ResponseBody>,
    watch: Watch,
    /// Takes the usage out that only the router asked for.
    own_usage: Option<OwnUsage>,
    /// Whether it goes out in the frames of an event stream.
    is_framed: bool,
    /// Whether it goes into a file, where last words would be taken for the answer.
    is_kept: bool,
    /// Whether the head has promised how long the body is, so that nothing can be added.
    has_length: bool,
    /// Whether what is stored under the response's id is to be found again.
    is_stored: bool,
    first_token_noted: bool,
    last_piece: Time,
    /// Given back at the last byte, before the client has it.
    slot: Option<SlotGuard>,
    record: Box<Record>,
}

/// The body cannot be completed, nor can the client be told so in it.
#[derive(Debug, thiserror::Error)]
#[error("the response broke off")]
pub(crate) struct BrokenOff;

/// Turns an answer that has begun into the response to the client.
pub(crate) fn relay(answer: Forwarded, mut record: Box<Record>) -> Response<Box<Relay>> {
    let Forwarded { route, held, placement } = answer;
    let status = held.status();
    record.status = Some(status.as_u16());
    record.stage = ClientStage::Response;
    let Held { mut headers, mut pieces, body, watch, heard, .. } = *held;
    let mut own_usage = (record.usage_is_ours && matches!(watch, Watch::Events(_))).then(OwnUsage::default);
    if let Some(own_usage) = &mut own_usage {
        headers.remove(CONTENT_LENGTH);
        pieces = pieces.iter().map(|piece| own_usage.pass(piece)).filter(|passed| !passed.is_empty()).collect();
    }
    headers::clean_response(&mut headers);
    let (mut is_framed, mut is_kept) = (false, false);
    if let Some(call) = &record.call {
        headers = envelope::headers(headers, call, &record);
        (is_framed, is_kept) = (call.is_framed(), call.is_kept());
    }
    if is_framed {
        pieces = pieces.iter().map(|piece| envelope::frames(piece)).collect();
    }
    headers.insert(REQUEST_ID, record.request_id.clone());
    expose_decision(&mut headers, &record);
    if let Some(trace) = &mut record.trace {
        trace.answered(pieces.iter());
        headers.extend(diagnosis(&record).map(|diagnosis| (CACHE_DIAGNOSTICS, diagnosis)));
    }
    let Placement { slot, .. } = placement;
    let mut relay = Relay {
        is_framed,
        is_kept,
        has_length: headers.contains_key(CONTENT_LENGTH),
        pieces,
        body,
        watch,
        own_usage,
        is_stored: matches!(route, Route::Prompt(Api::Responses)),
        first_token_noted: record.has_first_token(),
        last_piece: heard,
        slot: Some(slot),
        record,
    };
    relay.note(heard);
    relay.settle();
    let mut response = Response::new(Box::new(relay));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Tells the decision in headers, where that is on.
pub(crate) fn expose_decision(headers: &mut HeaderMap, record: &Record) {
    let Some((decision, _)) = &record.placed else { return };
    if !record.rules.expose_decisions {
        return;
    }
    headers.insert(INSTANCE, headers::ascii(decision.chosen.as_str()));
    headers.insert(REASON, HeaderValue::from_static(decision.reason.as_str()));
    if let Some(home) = &decision.home {
        headers.insert(HOME, headers::ascii(home.as_str()));
    }
    if let Some(key) = decision.key {
        headers.insert(KEY, headers::ascii(&key.to_string()));
    }
}

/// Why a body breaks off.
#[derive(Debug, Clone, Copy)]
enum Break {
    /// The connection broke, or the framing did.
    Truncated,
    /// No piece for too long.
    Idle,
    /// The request as a whole took too long.
    Total,
    /// The router is being stopped.
    Stopping,
}

impl Break {
    /// What it is called in frames.
    fn exception(self) -> StreamException {
        match self {
            Break::Truncated => StreamException::StreamBroken,
            Break::Idle | Break::Total => StreamException::ModelInvocationTimeExceeded,
            Break::Stopping => StreamException::InternalFailure,
        }
    }
}

impl Relay {
    /// Notes that relaying failed in a way that must not happen.
    pub(crate) fn fail(&mut self) {
        self.record.end(Outcome::InternalError);
    }

    /// The next piece; `None` at the end.
    pub(crate) fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                self.record.bytes_out += piece.len() as u64;
                self.settle();
                return Poll::Ready(Some(Ok(piece)));
            }
            let Some(body) = &mut self.body else { return Poll::Ready(None) };
            match body.poll_next(context) {
                Poll::Ready(Some(Ok(piece))) => {
                    self.watch.scan(&piece);
                    self.note(self.record.worker.now());
                    let passed = match &mut self.own_usage {
                        Some(own_usage) => own_usage.pass(&piece),
                        None if self.is_framed => envelope::frames(&piece),
                        None => piece,
                    };
                    self.record.bytes_out += passed.len() as u64;
                    self.settle();
                    if !passed.is_empty() {
                        return Poll::Ready(Some(Ok(passed)));
                    }
                }
                Poll::Ready(None) => self.settle(),
                Poll::Ready(Some(Err(_))) => return self.break_off(Break::Truncated),
                Poll::Pending => {
                    return match self.poll_limits(context) {
                        Poll::Ready(why) => self.break_off(why),
                        Poll::Pending => Poll::Pending,
                    };
                }
            }
        }
    }

    /// How long the rest is where the instance has told, so that it stands in the head again; a stream that came without a
    /// length leaves without one, even if all of it is there already.
    pub(crate) fn length(&self) -> Option<u64> {
        let held: u64 = self.pieces.iter().map(|piece| piece.len() as u64).sum();
        let rest = self.body.as_ref().map_or(Some(0), ResponseBody::remaining);
        rest.filter(|_| self.has_length).map(|rest| held + rest)
    }

    /// Notes what the pieces so far tell.
    fn note(&mut self, now: Time) {
        self.last_piece = now;
        if let Some((_, instance)) = &self.record.placed {
            instance.note_byte(now);
            if self.is_stored
                && let Some(id) = self.watch.response_id()
            {
                self.record.worker.fleet.stored_responses().remember(&id, instance.location());
                self.is_stored = false;
            }
        }
        if !self.first_token_noted && self.watch.first_token_seen() {
            self.first_token_noted = true;
            self.record.first_token(now);
            if let Some(slot) = &mut self.slot {
                slot.first_token();
            }
        }
    }

    /// Sees whether the answer has come whole, and whether all of it was passed on.
    fn settle(&mut self) {
        if self.body.as_ref().is_some_and(ResponseBody::has_ended) {
            self.body = None;
            self.watch.end();
            let held_back = self.rest_of_filter();
            self.pieces.extend(held_back);
        }
        if self.body.is_none() {
            self.finish_upstream(true);
            if self.pieces.is_empty() {
                self.record.end(Outcome::Ok);
            }
        }
    }

    /// What was held back because it might have been the router's own usage.
    fn rest_of_filter(&mut self) -> Option<Bytes> {
        let rest = self.own_usage.as_mut()?.rest();
        (!rest.is_empty()).then(|| Bytes::from(rest))
    }

    /// Gives the slot back, and tells what is learned from the request: an answer that is `whole` shows that the prompt
    /// was computed, one that broke off before its first token does not.
    fn finish_upstream(&mut self, whole: bool) {
        self.body = None;
        let Some(mut slot) = self.slot.take() else { return };
        if whole && self.record.status.is_some_and(|status| (200..300).contains(&status)) {
            slot.answered();
        }
        self.record.usage = self.watch.usage();
        if let Some(usage) = self.record.usage {
            slot.report(&Report {
                prompt_tokens: usage.prompt_tokens,
                cached_tokens: usage.cached_tokens,
                output_tokens: usage.completion_tokens,
            });
        }
    }

    fn poll_limits(&mut self, context: &mut Context<'_>) -> Poll<Break> {
        let worker = Rc::clone(&self.record.worker);
        // Whoever polls this is woken when the phase changes.
        if worker.stop.phase() >= Phase::Truncating {
            return Poll::Ready(Break::Stopping);
        }
        let idle = self.last_piece + self.record.rules.timeouts.idle;
        let (due, why) = match self.record.deadline() {
            Some(deadline) if deadline < idle => (deadline, Break::Total),
            _ => (idle, Break::Idle),
        };
        self.record.alarm.poll(context, due, worker.clock()).map(|()| why)
    }

    /// Ends a body that cannot be completed: a stream of events by one that says so, anything else by breaking the
    /// connection, so that nobody takes it for whole.
    fn break_off(&mut self, why: Break) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        let (kind, outcome, error, message) = match why {
            Break::Truncated => (
                ErrorKind::BadGateway,
                Outcome::Truncated,
                Some(UpstreamErrorKind::Truncated),
                "the instance broke the connection within its answer",
            ),
            Break::Idle => (
                ErrorKind::GatewayTimeout,
                Outcome::UpstreamTimeout,
                Some(UpstreamErrorKind::IdleTimeout),
                "the instance stopped within its answer",
            ),
            Break::Total => (
                ErrorKind::GatewayTimeout,
                Outcome::UpstreamTimeout,
                Some(UpstreamErrorKind::TotalTimeout),
                "the answer took too long as a whole",
            ),
            Break::Stopping => (ErrorKind::Unavailable, Outcome::Truncated, None, "the router is being stopped"),
        };
        let last_words = match &self.watch {
            // The client has all that it waits for.
            watch if watch.is_complete() => Some(Bytes::new()),
            _ if self.is_framed => Some(envelope::exception(why.exception(), message)),
            Watch::Events(scanner) if !self.has_length && !self.is_kept => {
                let mut events = ErrorBody::new(kind, message).to_events(self.record.dialect);
                if !scanner.between_events() {
                    events.splice(0..0, *b"\n\n");
                }
                events.splice(0..0, self.own_usage.as_mut().map(OwnUsage::rest).unwrap_or_default());
                Some(Bytes::from(events))
            }
            _ => None,
        };
        let complete = last_words.as_ref().is_some_and(Bytes::is_empty);
        if let (Some(error), Some((_, instance)), false) = (error, &self.record.placed, complete) {
            instance.metrics().upstream_error(error);
        }
        if let (Some(variant), true, false) = (&self.record.variant, self.record.call.is_some(), complete) {
            variant.metrics().invocation_fault(InvocationFault::MidStream);
        }
        self.finish_upstream(complete);
        self.record.end(if complete { Outcome::Ok } else { outcome });
        match last_words {
            Some(words) if words.is_empty() => Poll::Ready(None),
            Some(words) => {
                self.record.bytes_out += words.len() as u64;
                Poll::Ready(Some(Ok(words)))
            }
            None => Poll::Ready(Some(Err(BrokenOff))),
        }
    }
}

impl Body for Relay {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        self.poll_piece(context).map_ok(Frame::data)
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.length().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
