//! Beside the stages: where diagnostics are on, keeps a request's prompt as hashes, and tells a client who asks what
//! changed since an earlier response of its own.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderValue;
use isotherm_fleet::{Placement, Variant};
use isotherm_telemetry::{Change, Ended, Outcome, PartKind, TracedRequest, Trail};
use isotherm_wire::error::Dialect;
use serde::Deserialize;

use super::decode::Decoded;
use super::finish::Record;
use crate::headers;
use crate::headers::COMPARE_WITH;
use crate::prompt::{hash_of, tenant_id, trail};

/// So far into an answer its id is looked for, in bytes.
const ID_WITHIN: usize = 1_024;

/// The longest id of a response that is kept, in bytes.
const LONGEST_ID: usize = 128;

/// What is kept of a request beside its record.
#[derive(Debug)]
pub(crate) struct Trace {
    /// The request, as others may see it.
    pub(crate) request: Arc<TracedRequest>,
    /// The response that its client wants it compared with.
    compare_with: Option<Box<str>>,
    response_id: Option<Box<str>>,
}

/// Keeps a request that is about to go to an instance of a variant, where that is wanted. The first word stands.
pub(crate) fn trace(
    request: &Decoded,
    variant: &Arc<Variant>,
    adapter: Option<&str>,
    placement: Option<&Placement>,
    record: &mut Record,
) {
    if !record.rules.keep_trails() || record.trace.is_some() {
        return;
    }
    let traces = record.worker.metrics.traces();
    let is_watched = traces.wants(record.arrived);
    if !is_watched && !record.rules.log_prompts {
        return;
    }
    let Some(trail) = scoped_trail(request, adapter, record) else { return };
    let since = record.worker.now().since(record.arrived);
    let traced = Arc::new(TracedRequest::new(
        (record.arrived, SystemTime::now() - since),
        record.request_id.to_str().unwrap_or_default().into(),
        (Arc::clone(variant.endpoint()), Arc::clone(variant.name())),
        record.model.as_deref().map(Arc::from),
        placement.map(|placement| placement.decision.chosen.clone()),
        trail,
    ));
    if is_watched {
        traces.leave(&traced);
    }
    let tell_clients = record.rules.diagnostics.as_ref().is_some_and(|diagnostics| diagnostics.tell_clients);
    let compare_with = if tell_clients { asked(request) } else { None };
    record.trace = Some(Box::new(Trace { request: traced, compare_with, response_id: None }));
}

fn scoped_trail(request: &Decoded, adapter: Option<&str>, record: &Record) -> Option<Trail> {
    let (read, seed) = (&request.read, record.rules.hash_seed);
    let hash = |text: Option<&str>| hash_of(seed, text);
    let prompt = &read.prompt;
    let header = record.call.as_ref().map_or_else(
        || tenant_id(&request.head.headers).ok().flatten(),
        |call| call.invocation.prefix_aware_id.clone(),
    );
    let target = record.call.as_ref().and_then(|call| call.invocation.target_model.as_deref());
    Some(Trail {
        tenant: hash(record.principal.as_ref().map(|holder| holder.tenant())),
        model: hash(prompt.model.as_deref()),
        adapter: hash(adapter.or(target).or(prompt.adapter.as_deref())),
        salt: hash(prompt.salt.as_deref()),
        tenant_id: hash(header.as_deref().or(prompt.cache_key.as_deref())),
        ..trail(read, seed)?
    })
}

/// The response that a client wants its request compared with: as OpenAI's or Anthropic's API has it, or in a header.
fn asked(request: &Decoded) -> Option<Box<str>> {
    #[derive(Deserialize)]
    struct Body {
        prompt_cache_options: Option<Options>,
        diagnostics: Option<Options>,
    }
    #[derive(Deserialize)]
    struct Options {
        #[serde(alias = "previous_message_id")]
        comparison_response_id: Option<Box<str>>,
    }
    if let Some(header) = request.head.headers.get(COMPARE_WITH) {
        return header.to_str().ok().map(Box::from);
    }
    let body = &request.read.body;
    let asks = |word: &[u8]| memchr::memmem::find(body, word).is_some();
    if !asks(b"comparison_response_id") && !asks(b"previous_message_id") {
        return None;
    }
    let body: Body = serde_json::from_slice(body).ok()?;
    body.prompt_cache_options.or(body.diagnostics)?.comparison_response_id
}

impl Trace {
    /// Looks at the beginning of the answer for its id: in every API that has one it is the first `id`.
    pub(crate) fn answered<'p>(&mut self, mut pieces: impl Iterator<Item = &'p Bytes>) {
        let Some(first) = pieces.find(|piece| !piece.is_empty()) else { return };
        let beginning = &first[..first.len().min(ID_WITHIN)];
        self.response_id = id_in(beginning);
    }

    /// The request has ended.
    pub(crate) fn end(self, record: &Record, outcome: Outcome, status: u16, duration: Duration) -> Arc<TracedRequest> {
        let usage = record.usage.unwrap_or_default();
        self.request.end(Ended {
            at: record.arrived + duration,
            status,
            outcome,
            decision: record.placed.as_ref().map(|(decision, _)| decision.clone()),
            queued: record.queued,
            time_to_first_token: record.time_to_first_token(),
            prompt_tokens: usage.prompt_tokens,
            cached_tokens: usage.cached_tokens,
            output_tokens: usage.completion_tokens,
            response_id: self.response_id,
        });
        self.request
    }
}

/// The value of the first `"id"`.
fn id_in(text: &[u8]) -> Option<Box<str>> {
    let behind = &text[memchr::memmem::find(text, br#""id""#)? + 4..];
    let value = behind.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
    let id = &value[..memchr::memchr(b'"', value)?];
    (1..=LONGEST_ID).contains(&id.len()).then(|| std::str::from_utf8(id).ok().map(Box::from))?
}

/// What a client who asked is told in the header `x-isotherm-cache-diagnostics`: the object that OpenAI's API has as
/// `prompt_cache_diagnostics`, or Anthropic's as `diagnostics`. `None` where nobody asked.
pub(crate) fn diagnosis(record: &Record) -> Option<HeaderValue> {
    let trace = record.trace.as_ref()?;
    let asked = trace.compare_with.as_deref()?;
    let trail = &trace.request.trail;
    let earlier = record.worker.metrics.traces().of_response(trail.tenant, asked);
    let change = earlier.as_ref().map(|earlier| Change::between(&earlier.trail, trail));
    let text = if record.dialect == Dialect::Anthropic {
        anthropic(change.as_ref(), trail, earlier.as_deref())
    } else {
        openai(change.as_ref())
    };
    Some(headers::ascii(&text))
}

fn anthropic(change: Option<&Change>, trail: &Trail, earlier: Option<&TracedRequest>) -> String {
    let Some(change) = change else {
        return r#"{"cache_miss_reason":{"type":"previous_message_not_found"}}"#.to_owned();
    };
    let kind = match change {
        Change::None { .. } => return r#"{"cache_miss_reason":null}"#.to_owned(),
        Change::Model => "model_changed",
        Change::Adapter | Change::Salt => "unavailable",
        Change::Part { .. } if change.is_in(PartKind::Tools) => "tools_changed",
        Change::Part { .. } if change.is_in_system() => "system_changed",
        Change::Part { .. } => "messages_changed",
    };
    // By the tokens that a byte of the earlier prompt was; by those of English prose where no engine has said.
    let counted = earlier.and_then(|earlier| Some((earlier.ended()?.prompt_tokens?, earlier.trail.bytes())));
    let per_byte = counted.map_or(1.0 / 4.2, |(tokens, bytes)| tokens as f64 / f64::from(bytes.max(1)));
    let missed = f64::from(trail.bytes().saturating_sub(change.shared_bytes())) * per_byte;
    format!(r#"{{"cache_miss_reason":{{"type":"{kind}","cache_missed_input_tokens":{missed:.0}}}}}"#)
}

fn openai(change: Option<&Change>) -> String {
    let reason = match change {
        Some(Change::None { .. }) => return r#"{"type":"cache_hit"}"#.to_owned(),
        None => "comparison_response_not_found",
        Some(Change::Model) => "model_changed",
        Some(Change::Adapter) => "adapter_changed",
        Some(Change::Salt) => "cache_salt_changed",
        Some(change) if change.is_in(PartKind::Tools) => "tools_changed",
        Some(Change::Part { .. }) => "input_changed",
    };
    format!(r#"{{"type":"cache_miss","reason":"{reason}"}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answers_id_is_the_first_one_in_it_in_every_api() {
        let texts = [
            r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"id":"2"}]}"#,
            r#"event: message_start
data: {"type":"message_start","message": {"id" : "chatcmpl-1","role":"assistant"}}"#,
            r#"{"id":"chatcmpl-1","usage":{}}"#,
        ];
        for text in texts {
            assert_eq!(id_in(text.as_bytes()).as_deref(), Some("chatcmpl-1"), "{text}");
        }
        for text in [r#"{"id":7}"#, r#"{"object":"x"}"#, r#"{"id":"cut off"#, r#"{"id":""}"#] {
            assert_eq!(id_in(text.as_bytes()), None, "{text}");
        }
    }
}
