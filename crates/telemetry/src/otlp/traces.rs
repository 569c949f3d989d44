//! Finished requests as spans: one of the request, and within it one of asking the engine, by the conventions for HTTP and
//! for generative AI (semantic-conventions-genai, "Development" as of 2026). No prompt and no answer stands in them.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::{Sender, fraction, nanoseconds, text, whole};
use crate::{AccessLogEntry, FinishedSpan, Outcome};

/// `SPAN_KIND_SERVER` and `SPAN_KIND_CLIENT`.
const SERVER: u8 = 2;
const CLIENT: u8 = 3;

/// `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;

/// The longest text of a client's choosing, in characters.
const LONGEST_TEXT: usize = 256;

/// The body of a request to `/v1/traces`.
pub fn traces(sender: &Sender, finished: &[FinishedSpan]) -> Vec<u8> {
    let spans: Vec<Value> = finished.iter().flat_map(spans).collect();
    let scoped = json!({ "scope": sender.scope(), "spans": spans });
    let body = json!({ "resourceSpans": [{ "resource": sender.resource(), "scopeSpans": [scoped] }] });
    body.to_string().into_bytes()
}

fn spans(finished: &FinishedSpan) -> impl Iterator<Item = Value> {
    [Some(request(finished)), engine(finished)].into_iter().flatten()
}

/// The whole request, as its client saw it.
fn request(FinishedSpan { context, entry, .. }: &FinishedSpan) -> Value {
    let route = entry.api.unwrap_or("other");
    let mut attributes = vec![
        text("http.request.method", &entry.method),
        text("url.path", &bounded(&entry.path)),
        text("http.route", route),
        whole("http.response.status_code", entry.status.into()),
        whole("http.request.body.size", entry.bytes_in),
        whole("http.response.body.size", entry.bytes_out),
        text("isotherm.request_id", &bounded(&entry.request_id)),
        text("isotherm.outcome", entry.outcome.as_str()),
    ];
    attributes.extend(error_type(entry));
    attributes.extend(entry.queued.map(|queued| fraction("isotherm.queued_seconds", queued.as_secs_f64())));
    let mut span = json!({
        "traceId": format!("{:032x}", context.trace),
        "spanId": format!("{:016x}", context.request),
        "name": format!("{} {route}", entry.method),
        "kind": SERVER,
        "startTimeUnixNano": nanoseconds(entry.time),
        "endTimeUnixNano": nanoseconds(entry.time + entry.duration),
        "attributes": attributes,
        "flags": 1,
    });
    if let Some(parent) = context.parent {
        span["parentSpanId"] = format!("{parent:016x}").into();
    }
    if entry.status >= 500 {
        span["status"] = json!({ "code": ERROR });
    }
    span
}

/// What was asked of the engine, once an instance was chosen.
fn engine(FinishedSpan { context, entry, placed_after }: &FinishedSpan) -> Option<Value> {
    let (decision, placed_after) = (entry.decision.as_ref()?, (*placed_after)?);
    let operation = operation(entry.api.unwrap_or_default());
    let name =
        entry.model.as_deref().map_or_else(|| operation.to_owned(), |model| format!("{operation} {}", bounded(model)));
    let placed = entry.time + placed_after;
    let mut attributes = vec![
        text("gen_ai.operation.name", operation),
        text("gen_ai.provider.name", "isotherm"),
        text("isotherm.endpoint", entry.endpoint.as_deref().unwrap_or_default()),
        text("isotherm.variant", entry.variant.as_deref().unwrap_or_default()),
        text("isotherm.instance", decision.chosen.as_str()),
        text("isotherm.strategy", decision.strategy.as_str()),
        text("isotherm.reason", decision.reason.as_str()),
        whole("isotherm.in_flight", decision.in_flight.into()),
        whole("isotherm.retries", entry.retries.into()),
    ];
    attributes.extend(entry.model.as_deref().map(|model| text("gen_ai.request.model", &bounded(model))));
    attributes.extend(entry.prompt_tokens.map(|tokens| whole("gen_ai.usage.input_tokens", tokens)));
    attributes.extend(entry.cached_tokens.map(|tokens| whole("gen_ai.usage.cache_read.input_tokens", tokens)));
    attributes.extend(entry.output_tokens.map(|tokens| whole("gen_ai.usage.output_tokens", tokens)));
    attributes.extend(decision.key.map(|key| text("isotherm.key", &key.to_string())));
    attributes.extend(decision.home.as_ref().map(|home| text("isotherm.home", home.as_str())));
    attributes.extend(decision.cause.map(|cause| text("isotherm.spill_cause", cause.as_str())));
    attributes.extend(error_type(entry));
    let mut events = Vec::new();
    if let Some(first) = entry.time_to_first_token {
        let seconds = first.saturating_sub(placed_after).as_secs_f64();
        attributes.push(fraction("gen_ai.response.time_to_first_chunk", seconds));
        events.push(event("first token", entry.time + first));
    }
    if entry.retries > 0 {
        events.push(event("tried again", placed));
    }
    if decision.cause.is_some() {
        events.push(event("spilled", placed));
    }
    let mut span = json!({
        "traceId": format!("{:032x}", context.trace),
        "spanId": format!("{:016x}", context.engine),
        "parentSpanId": format!("{:016x}", context.request),
        "name": name,
        "kind": CLIENT,
        "startTimeUnixNano": nanoseconds(placed),
        "endTimeUnixNano": nanoseconds(entry.time + entry.duration.max(placed_after)),
        "attributes": attributes,
        "events": events,
        "flags": 1,
    });
    if entry.status >= 400 && entry.outcome != Outcome::ClientLeft {
        span["status"] = json!({ "code": ERROR });
    }
    Some(span)
}

fn event(name: &str, at: SystemTime) -> Value {
    json!({ "name": name, "timeUnixNano": nanoseconds(at) })
}

fn error_type(entry: &AccessLogEntry) -> Option<Value> {
    let failed = entry.status >= 400;
    let word = if entry.outcome == Outcome::Ok { entry.status.to_string() } else { entry.outcome.as_str().to_owned() };
    failed.then(|| text("error.type", &word))
}

/// The convention's word for what is asked.
fn operation(api: &str) -> &'static str {
    match api {
        "/v1/completions" => "text_completion",
        "/v1/embeddings" => "embeddings",
        "/v1/rerank" => "rerank",
        "/v1/score" => "score",
        _ => "chat",
    }
}

fn bounded(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}
