//! The last stage, which always runs: what was noted of a request on its way becomes metrics and a line in the access
//! log when the record is dropped, whether the response was sent whole, refused, or its client left.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderValue, Method, Uri};
use isotherm_config::{AccountId, KeyHolder};
use isotherm_core::{Decision, PrefixKey, Reason, Time};
use isotherm_fleet::{Instance, Variant};
use isotherm_telemetry::{
    AccessLogEntry, CacheOutcome, ClientStage, FinishedSpan, Invocation, Outcome, RetryKind, SpanContext,
    TracedRequest, VariantMetrics, WatchedKey, WatchedRequest,
};
use isotherm_wire::aws::{Caller, Protocol};
use isotherm_wire::error::Dialect;
use isotherm_wire::usage::Usage;

use super::trace::Trace;
use crate::alarm::Alarm;
use crate::call::Call;
use crate::settings::Rules;
use crate::worker::Worker;
use crate::{headers, route};

/// The status that is counted for a client that left (nginx's convention).
const CLIENT_LEFT: u16 = 499;

/// What is noted of one request on its way.
#[derive(Debug)]
pub(crate) struct Record {
    /// What the thread's requests share.
    pub(crate) worker: Rc<Worker>,
    /// The rules under which it arrived.
    pub(crate) rules: Arc<Rules>,
    /// When it arrived.
    pub(crate) arrived: Time,
    /// The form in which its client expects errors.
    pub(crate) dialect: Dialect,
    /// Its id.
    pub(crate) request_id: HeaderValue,
    /// How far it is.
    pub(crate) stage: ClientStage,
    /// What it calls, where that is SageMaker's runtime.
    pub(crate) call: Option<Box<Call>>,
    /// How long it may take as a whole, where its path says so.
    pub(crate) limit: Option<Duration>,
    /// By when after its arrival it must have its place, where its client says so.
    pub(crate) room_within: Option<Duration>,
    /// Whose key it came with.
    pub(crate) principal: Option<Arc<KeyHolder>>,
    /// The access key and the region of what AWS's clients sign or hold, once it is proven or needs no proof.
    pub(crate) signed: Option<(Box<str>, Box<str>)>,
    /// The protocol, where a service of AWS's is asked for.
    pub(crate) aws: Option<Protocol>,
    /// The name of its route, once it is known.
    pub(crate) route: Option<&'static str>,
    /// The model that it names.
    pub(crate) model: Option<Box<str>>,
    /// The variant, once it is known.
    pub(crate) variant: Option<Arc<Variant>>,
    /// By what views of the router know its beginning.
    pub(crate) prefix: Option<PrefixKey>,
    /// The last decision and the instance that it chose.
    pub(crate) placed: Option<(Decision, Arc<Instance>)>,
    /// How long it waited for room.
    pub(crate) queued: Option<Duration>,
    /// Whether its body was read whole.
    pub(crate) body_was_read: bool,
    /// Bytes of its body.
    pub(crate) bytes_in: u64,
    /// Bytes of its response's body.
    pub(crate) bytes_out: u64,
    /// The status of its response, once there is one.
    pub(crate) status: Option<u16>,
    /// The status of the container as its client is told it within an error that has another one.
    pub(crate) answered: Option<u16>,
    /// What the engine says that it cost.
    pub(crate) usage: Option<Usage>,
    /// Whether the router asked for that in its client's place.
    pub(crate) usage_is_ours: bool,
    /// What is kept of it for diagnostics, where they are on.
    pub(crate) trace: Option<Box<Trace>>,
    /// Its place in a trace, where tracing is on.
    pub(crate) span: Option<Box<SpanContext>>,
    /// Rings when whatever it waits for takes too long.
    pub(crate) alarm: Alarm,
    client: Option<SocketAddr>,
    method: Method,
    uri: Uri,
    /// When the instance was chosen.
    placed_at: Option<Time>,
    time_to_first_token: Option<Duration>,
    retries: u32,
    /// Whether it is the copy of another request, which stands in no log.
    is_copy: bool,
    /// How it ended, once it has.
    outcome: Option<Outcome>,
}

impl Record {
    /// The record of a request that arrives now; without a client, of one that the router runs by itself.
    pub(crate) fn begin(worker: Rc<Worker>, client: Option<SocketAddr>, request: &http::request::Parts) -> Box<Record> {
        let random = u128::from(worker.random()) << 64 | u128::from(worker.random());
        let traceparent = || request.headers.get(headers::TRACEPARENT).map(HeaderValue::as_bytes);
        let span = worker.metrics.spans().begin(traceparent, || worker.random());
        // Large, and moved from hand to hand.
        Box::new(Record {
            span: span.map(Box::new),
            rules: worker.rules(),
            arrived: worker.now(),
            dialect: route::dialect_of(request.uri.path()),
            request_id: headers::request_id(&request.headers, random),
            stage: ClientStage::Upload,
            call: None,
            limit: None,
            room_within: None,
            principal: None,
            signed: None,
            aws: None,
            route: None,
            model: None,
            variant: None,
            prefix: None,
            placed: None,
            queued: None,
            body_was_read: false,
            bytes_in: 0,
            bytes_out: 0,
            status: None,
            answered: None,
            usage: None,
            usage_is_ours: false,
            trace: None,
            alarm: worker.spare_alarm(),
            worker,
            client,
            method: request.method.clone(),
            uri: request.uri.clone(),
            placed_at: None,
            time_to_first_token: None,
            retries: 0,
            is_copy: false,
            outcome: None,
        })
    }

    /// The record of a copy of this request for a shadow variant: counted there, and in no log.
    pub(crate) fn of_copy(&self, variant: &Arc<Variant>) -> Box<Record> {
        let mut copied = http::Request::new(()).into_parts().0;
        copied.method.clone_from(&self.method);
        copied.uri.clone_from(&self.uri);
        let mut copy = Record::begin(Rc::clone(&self.worker), self.client, &copied);
        copy.rules = Arc::clone(&self.rules);
        copy.request_id = self.request_id.clone();
        copy.limit = self.limit;
        copy.route = self.route;
        copy.model.clone_from(&self.model);
        copy.variant = Some(Arc::clone(variant));
        copy.bytes_in = self.bytes_in;
        copy.is_copy = true;
        copy.span = None;
        copy
    }

    /// Notes a decision.
    pub(crate) fn place(&mut self, decision: Decision, instance: Arc<Instance>, now: Time) {
        self.metrics().decision(&decision);
        self.stage = ClientStage::Prefill;
        self.placed = Some((decision, instance));
        self.placed_at = Some(now);
    }

    /// Notes a further attempt.
    pub(crate) fn retry(&mut self, kind: RetryKind) {
        self.metrics().retry(kind);
        self.retries += 1;
    }

    /// Notes that the first token passes now.
    pub(crate) fn first_token(&mut self, now: Time) {
        let elapsed = now.since(self.arrived);
        self.time_to_first_token = Some(elapsed);
        if let Some((decision, _)) = &self.placed {
            self.metrics().first_token(decision.arm, decision.reason, elapsed);
        }
    }

    /// Whether a first token has passed.
    pub(crate) fn has_first_token(&self) -> bool {
        self.time_to_first_token.is_some()
    }

    /// From its arrival to its first generated token, once that has passed.
    pub(crate) fn time_to_first_token(&self) -> Option<Duration> {
        self.time_to_first_token
    }

    /// Its place in a trace that is recorded.
    fn sampled(&self) -> Option<&SpanContext> {
        self.span.as_deref().filter(|span| span.sampled)
    }

    /// Notes how the request ended. The first word stands.
    pub(crate) fn end(&mut self, outcome: Outcome) {
        self.outcome.get_or_insert(outcome);
    }

    /// How long the request as a whole may take.
    pub(crate) fn total(&self) -> Option<Duration> {
        let limits = [self.rules.timeouts.total, self.limit];
        limits.into_iter().flatten().min()
    }

    /// The point in time at which the request as a whole is too late.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.total().map(|total| self.arrived + total)
    }

    /// Whose resources it speaks of.
    pub(crate) fn account(&self) -> &AccountId {
        self.principal.as_ref().and_then(|holder| holder.account()).unwrap_or(&self.rules.account)
    }

    /// Whose endpoints it may reach, as the topology tells accounts apart: `None` for those of the router's own.
    pub(crate) fn foreign_account(&self) -> Option<&str> {
        Some(self.account()).filter(|account| **account != self.rules.account).map(AccountId::as_str)
    }

    /// On whose behalf it comes, as AWS's services are told.
    pub(crate) fn caller(&self) -> Caller {
        let (access_key, region) =
            self.signed.as_ref().map(|(key, region)| (key.to_string(), region.to_string())).unzip();
        Caller {
            account: self.account().as_str().to_owned(),
            region: region.unwrap_or_else(|| self.rules.region.as_str().to_owned()),
            access_key,
            name: self.principal.as_ref().map(|holder| holder.name().as_str().to_owned()),
        }
    }

    fn metrics(&self) -> &VariantMetrics {
        match &self.variant {
            Some(variant) => variant.metrics(),
            None => self.worker.metrics.unplaced(),
        }
    }

    fn count(&self, outcome: Outcome, status: u16, duration: Duration) {
        let metrics = self.metrics();
        metrics.request(self.route.unwrap_or("other"), status, duration);
        if outcome == Outcome::ClientLeft {
            metrics.client_left(self.stage);
        }
        if let (Some(model), 200..=299) = (&self.model, status) {
            metrics.model(model);
        }
        let invocation = self.invocation(outcome, status, duration);
        metrics.invocations().count(&invocation);
        let Some((decision, instance)) = &self.placed else { return };
        instance.metrics().invocations().count(&invocation);
        let usage = self.usage.unwrap_or_default();
        if let Some(first_token) = self.time_to_first_token {
            let outcome = CacheOutcome::of(decision.reason, cached_of_prompt(&usage));
            metrics.first_token_by_outcome(outcome, first_token);
            if let (Some(span), Some(variant)) = (self.sampled(), &self.variant) {
                self.worker.metrics.exemplify((variant.endpoint(), variant.name()), outcome, span, first_token);
            }
        }
        if let Some(tokens) = usage.prompt_tokens {
            instance.metrics().prompt(decision, tokens, usage.cached_tokens);
        }
        if let Some(tokens) = usage.completion_tokens {
            instance.metrics().output(tokens);
        }
    }

    fn invocation(&self, outcome: Outcome, status: u16, duration: Duration) -> Invocation {
        let overhead = self.placed_at.map(|placed| placed.since(self.arrived));
        let usage = self.usage.unwrap_or_default();
        Invocation {
            status: self.answered.unwrap_or(status),
            outcome,
            spilled: self.placed.as_ref().is_some_and(|(decision, _)| decision.reason == Reason::Spill),
            overhead,
            model: overhead.map(|overhead| duration.saturating_sub(overhead)),
            first_token: self.time_to_first_token,
            cached_of_prompt: cached_of_prompt(&usage),
        }
    }

    /// Leaves what views of the router show: nothing of the prompt but its key.
    fn leave(&self, outcome: Outcome, status: u16, duration: Duration) {
        let (Some(variant), Some((decision, _))) = (&self.variant, &self.placed) else { return };
        let usage = self.usage.unwrap_or_default();
        let key = || {
            Some(WatchedKey {
                key: self.prefix?,
                endpoint: Arc::clone(variant.endpoint()),
                variant: Arc::clone(variant.name()),
                instance: decision.chosen.clone(),
                cached_of_prompt: cached_of_prompt(&usage),
                duration,
            })
        };
        let request = || {
            Some(WatchedRequest {
                time: SystemTime::now(),
                request_id: self.request_id.to_str().unwrap_or_default().into(),
                endpoint: Arc::clone(variant.endpoint()),
                variant: Arc::clone(variant.name()),
                model: self.model.as_deref().map(Arc::from),
                status,
                outcome,
                decision: decision.clone(),
                time_to_first_token: self.time_to_first_token,
                duration,
                prompt_tokens: usage.prompt_tokens,
                cached_tokens: usage.cached_tokens,
                output_tokens: usage.completion_tokens,
            })
        };
        self.worker.metrics.tap().leave(key, request);
    }

    fn entry(
        &mut self,
        outcome: Outcome,
        status: u16,
        duration: Duration,
        traced: Option<Arc<TracedRequest>>,
    ) -> AccessLogEntry {
        let usage = self.usage.unwrap_or_default();
        AccessLogEntry {
            time: SystemTime::now() - duration,
            request_id: self.request_id.to_str().unwrap_or_default().into(),
            client: self.client,
            principal: self.principal.as_ref().map(|holder| holder.name().as_str().into()),
            method: self.method.as_str().into(),
            path: self.uri.path().into(),
            api: self.route,
            endpoint: self.variant.as_ref().map(|variant| Arc::clone(variant.endpoint())),
            variant: self.variant.as_ref().map(|variant| Arc::clone(variant.name())),
            model: self.model.take().map(Arc::from),
            status,
            outcome,
            decision: self.placed.take().map(|(decision, _)| decision),
            retries: self.retries,
            queued: self.queued,
            time_to_first_token: self.time_to_first_token,
            duration,
            prompt_tokens: usage.prompt_tokens,
            cached_tokens: usage.cached_tokens,
            output_tokens: usage.completion_tokens,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            prompt: traced.filter(|_| self.rules.log_prompts).map(|traced| (traced, self.rules.hash_seed)),
        }
    }
}

/// Tokens of the prompt and how many of them were cached, where the engine said both.
fn cached_of_prompt(usage: &Usage) -> Option<(u64, u64)> {
    usage.prompt_tokens.zip(usage.cached_tokens)
}

impl Drop for Record {
    fn drop(&mut self) {
        // Nobody said how it ended: the client left, unless the way itself broke down.
        let unsaid = if std::thread::panicking() { Outcome::InternalError } else { Outcome::ClientLeft };
        let outcome = self.outcome.unwrap_or(unsaid);
        let status = match outcome {
            Outcome::ClientLeft => CLIENT_LEFT,
            Outcome::InternalError => 500,
            _ => self.status.unwrap_or(500),
        };
        let duration = self.worker.now().since(self.arrived);
        self.worker.spare(std::mem::take(&mut self.alarm));
        self.count(outcome, status, duration);
        if !self.is_copy {
            self.leave(outcome, status, duration);
            let worker = Rc::clone(&self.worker);
            let traced = self.trace.take().map(|trace| trace.end(self, outcome, status, duration));
            match self.sampled().copied() {
                None => worker.access_log.log(|| self.entry(outcome, status, duration, traced)),
                Some(context) => {
                    let placed_after = self.placed_at.map(|placed| placed.since(self.arrived));
                    let entry = self.entry(outcome, status, duration, traced);
                    let finished = || FinishedSpan { context, entry: entry.clone(), placed_after };
                    worker.metrics.spans().end(finished);
                    worker.access_log.log(|| entry);
                }
            }
        }
    }
}
