//! One request and its answer, timed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use isotherm_report::{Failure, FailureKind};

use crate::answer::{Answer, Usage, excerpt};
use crate::clock::Clock;
use crate::connection::Connection;
use crate::events::EventReader;

/// The longest body that is read whole: answers without streaming, and errors.
const MAX_BODY: usize = 16 * 1024 * 1024;

/// What was seen of one request.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) send: Duration,
    pub(crate) first_token: Option<Duration>,
    pub(crate) end: Duration,
    pub(crate) status: Option<u16>,
    pub(crate) instance: Option<Arc<str>>,
    pub(crate) reason: Option<Arc<str>>,
    pub(crate) home: Option<Arc<str>>,
    pub(crate) usage: Usage,
    /// What the engine said, as far as it came.
    pub(crate) text: String,
    pub(crate) failure: Option<Failure>,
}

impl Exchange {
    /// Sends a request and reads its answer to the end, waiting for at most `timeout` of wall-clock time. Nothing is
    /// ever sent twice. The clock starts when the connection is ready.
    pub(crate) async fn perform(
        connection: &mut Connection,
        request: Request<Full<Bytes>>,
        clock: &Clock,
        timeout: Duration,
    ) -> Exchange {
        let mut exchange = Exchange { send: clock.now(), ..Exchange::default() };
        let outcome = tokio::time::timeout(timeout, exchange.attempt(connection, request, clock)).await;
        exchange.failure = match outcome {
            Ok(outcome) => outcome.err(),
            Err(_) => {
                Some(Failure { kind: FailureKind::Timeout, detail: format!("no complete answer in {timeout:?}") })
            }
        };
        exchange.end = clock.now();
        exchange
    }

    async fn attempt(
        &mut self,
        connection: &mut Connection,
        request: Request<Full<Bytes>>,
        clock: &Clock,
    ) -> Result<(), Failure> {
        let mut sender = connection.take().await?;
        self.send = clock.now();
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| Failure { kind: FailureKind::Disconnect, detail: describe(&error) })?;
        self.read_head(&response);
        if !response.status().is_success() {
            let body = whole_body(response).await?;
            connection.keep(sender);
            return Err(Failure { kind: FailureKind::Status, detail: excerpt(&body) });
        }
        if is_event_stream(response.headers()) {
            self.read_stream(response.into_body(), clock).await?;
        } else {
            let body = whole_body(response).await?;
            self.first_token = Some(clock.now());
            let answer = Answer::parse(&body)?;
            self.usage = answer.usage.unwrap_or_default();
            self.text.extend(answer.text());
        }
        connection.keep(sender);
        Ok(())
    }

    fn read_head(&mut self, response: &Response<Incoming>) {
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(Arc::from);
        self.status = Some(response.status().as_u16());
        self.instance = header("x-isotherm-instance");
        self.reason = header("x-isotherm-reason");
        self.home = header("x-isotherm-home");
    }

    /// Reads a stream to its end, which `[DONE]` must announce. Where the engine counts tokens and none had text, the
    /// first chunk behind the role's came with the first of them.
    async fn read_stream(&mut self, mut body: Incoming, clock: &Clock) -> Result<(), Failure> {
        let mut events = EventReader::default();
        let mut done = false;
        let mut first_without_text = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| truncated(describe(&error)))?;
            let Ok(piece) = frame.into_data() else { continue };
            let now = clock.now();
            events.read(&piece, |data| {
                if data == b"[DONE]" {
                    done = true;
                    return Ok(());
                }
                let answer = Answer::parse(data)?;
                if self.first_token.is_none() && answer.has_token() {
                    self.first_token = Some(now);
                }
                if first_without_text.is_none() && answer.is_generated() {
                    first_without_text = Some(now);
                }
                self.usage = answer.usage.unwrap_or(self.usage);
                self.text.extend(answer.text());
                Ok(())
            })?;
        }
        if !done {
            return Err(truncated("the stream ended without [DONE]".to_owned()));
        }
        if self.first_token.is_none() && self.usage.completion_tokens.is_some_and(|tokens| tokens > 0) {
            self.first_token = first_without_text;
        }
        if self.first_token.is_none() {
            return Err(Failure { kind: FailureKind::Malformed, detail: "the stream held no token".to_owned() });
        }
        Ok(())
    }
}

async fn whole_body(response: Response<Incoming>) -> Result<Bytes, Failure> {
    let collected = Limited::new(response.into_body(), MAX_BODY).collect().await;
    Ok(collected.map_err(|error| truncated(error.to_string()))?.to_bytes())
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let content_type = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|content_type| content_type.starts_with("text/event-stream"))
}

fn truncated(detail: String) -> Failure {
    Failure { kind: FailureKind::Truncated, detail }
}

/// An error with its cause, which hyper's own message leaves out.
fn describe(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
