//! Response bodies: whole, a stream of events, or silence.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use http_body::{Body, Frame, SizeHint};
use serde_json::Value;
use thiserror::Error;

use crate::event_stream::EventStream;
use crate::observed::Observation;
use crate::usage::Usage;

/// A response of the emulator.
pub(crate) type Reply = Response<ReplyBody>;

/// The connection breaks here, on demand.
#[derive(Debug, Error)]
#[error("the emulator was told to break the connection")]
pub(crate) struct Broken;

/// A body that reports its end to the observation of its request.
#[derive(Debug)]
pub(crate) struct ReplyBody {
    kind: Kind,
    observation: Option<Observation>,
}

#[derive(Debug)]
enum Kind {
    Whole { bytes: Bytes, usage: Usage },
    Events(Box<EventStream>),
    Silent,
}

impl ReplyBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::of(Kind::Whole { bytes: bytes.into(), usage: Usage::default() })
    }

    /// Never sends a byte and never ends.
    pub(crate) fn silent() -> Self {
        Self::of(Kind::Silent)
    }

    /// Has the observation told how the body ends.
    pub(crate) fn observe(&mut self, mut observation: Observation) {
        if self.is_end_stream() {
            observation.complete();
        } else {
            self.observation = Some(observation);
        }
    }

    fn of(kind: Kind) -> Self {
        Self { kind, observation: None }
    }

    fn usage(&self) -> Usage {
        match &self.kind {
            Kind::Whole { usage, .. } => *usage,
            Kind::Events(events) => events.usage(),
            Kind::Silent => Usage::default(),
        }
    }

    fn complete(&mut self) {
        if let Some(observation) = &mut self.observation {
            observation.complete();
        }
    }
}

/// 200 with JSON.
pub(crate) fn json(body: &Value) -> Reply {
    counted_json(body, Usage::default())
}

/// 200 with JSON, and the tokens that it took for the observation.
pub(crate) fn counted_json(body: &Value, usage: Usage) -> Reply {
    with_json_type(ReplyBody::of(Kind::Whole { bytes: Bytes::from(body.to_string()), usage }))
}

/// 200 and the head of a JSON answer, with any body.
pub(crate) fn with_json_type(body: ReplyBody) -> Reply {
    with_type(body, "application/json")
}

/// 200 with text.
pub(crate) fn text(body: String) -> Reply {
    with_type(ReplyBody::whole(body), "text/plain; version=0.0.4; charset=utf-8")
}

/// 200 with a stream of events; the head leaves at once.
pub(crate) fn events(stream: EventStream) -> Reply {
    event_stream(ReplyBody::of(Kind::Events(Box::new(stream))))
}

/// 200 and the head of an event stream, with any body.
pub(crate) fn event_stream(body: ReplyBody) -> Reply {
    let mut reply = with_type(body, "text/event-stream; charset=utf-8");
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    reply
}

fn with_type(body: ReplyBody, content_type: &'static str) -> Reply {
    let mut reply = Response::new(body);
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = match &mut self.kind {
            Kind::Silent => return Poll::Pending,
            Kind::Whole { bytes, .. } if bytes.is_empty() => None,
            Kind::Whole { bytes, .. } => Some(Ok(std::mem::take(bytes))),
            Kind::Events(events) => match events.poll_next(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(frame) => frame,
            },
        };
        if self.is_end_stream() {
            self.complete();
        }
        Poll::Ready(frame.map(|result| result.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole { bytes, .. } => bytes.is_empty(),
            Kind::Events(events) => events.is_done(),
            Kind::Silent => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole { bytes, .. } => SizeHint::with_exact(bytes.len() as u64),
            Kind::Events(_) | Kind::Silent => SizeHint::default(),
        }
    }
}

impl Drop for ReplyBody {
    fn drop(&mut self) {
        if let Some(observation) = &self.observation {
            observation.tokens(self.usage());
        }
    }
}
