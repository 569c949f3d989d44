//! Asks an instance which version it runs and how it renders a conversation, so that replicas can be compared.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::get;
use super::{Watch, jitter};
use crate::EngineKind;

/// How often an instance is asked that is the same all the time.
const ASK_EVERY: Duration = Duration::from_secs(600);

/// How long after an answer that lacks something: doubled each time, until it is that.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The largest answer, in bytes.
const LARGEST: usize = 1 << 20;

/// The most of a version that is kept, in characters: vLLM's nightly ones have 40.
const LONGEST_LINE: usize = 100;

impl Watch {
    /// Asks when the first figures or other models have come, after a restart, and from time to time. Only engines whose
    /// metrics are read are asked: they are known.
    pub(super) async fn ask_who_it_is_for_ever(&self) {
        let mut pause = ASK_EVERY;
        loop {
            let told = timeout(pause.mul_f64(jitter(0.8, 1.0)), self.ask_who_it_is.notified()).await;
            let Some((figures, _)) = self.instance.engine().figures else { continue };
            // A conversation is for a model: without one, nothing is rendered.
            let is_listed = self.instance.listing().is_some();
            let (version, template) = match figures.kind {
                EngineKind::Vllm => (self.version().await, self.rendered().await),
                EngineKind::Trtllm => (self.version().await, None),
                EngineKind::Sglang => {
                    let told = self.fetch("/get_server_info").await;
                    (line(&told, "/version"), text(&told, "/chat_template").map(hash))
                }
                EngineKind::LlamaCpp => {
                    let told = self.fetch("/props").await;
                    (line(&told, "/build_info"), text(&told, "/chat_template").map(hash))
                }
            };
            let is_whole = version.is_some() && (template.is_some() || figures.kind == EngineKind::Trtllm);
            pause = match (is_whole, told) {
                (true, _) => ASK_EVERY,
                (false, Ok(())) => ASK_AGAIN,
                (false, Err(_)) => (2 * pause).min(ASK_EVERY),
            };
            self.instance.change_engine(|report| {
                (report.version, report.template) = (version, template);
                report.who_asked |= is_listed;
            });
        }
    }

    async fn version(&self) -> Option<Arc<str>> {
        line(&self.fetch("/version").await, "/version")
    }

    async fn fetch(&self, path: &str) -> Value {
        let answered = get::body(&self.instance, path, TIMEOUT, LARGEST).await;
        let body = answered.ok().filter(|(status, _)| status.is_success()).map(|(_, body)| body);
        body.and_then(|body| serde_json::from_slice(&body).ok()).unwrap_or_default()
    }

    /// vLLM shows no template, but turns a conversation into tokens by it.
    async fn rendered(&self) -> Option<u64> {
        let listing = self.instance.listing()?;
        let model = listing.models().first()?.id().to_owned();
        let conversation = json!({
            "model": model,
            "messages": [
                { "role": "system", "content": "Which line joins places of equal warmth?" },
                { "role": "user", "content": "An isotherm." },
            ],
        });
        let question = Bytes::from(conversation.to_string());
        let (status, body) = get::answer(&self.instance, "/tokenize", question, TIMEOUT, LARGEST).await.ok()?;
        let answer: Value = serde_json::from_slice(&body).ok()?;
        Some(hash(&answer.get("tokens").filter(|_| status.is_success())?.to_string()))
    }
}

fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}

/// An engine's word goes into listings: no more of it than a short line.
fn line(value: &Value, pointer: &str) -> Option<Arc<str>> {
    let line = text(value, pointer)?.lines().next()?;
    Some(line.chars().take(LONGEST_LINE).collect::<String>().into())
}

/// Compared within one run of the router only.
fn hash(text: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(text.as_bytes())
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;
    use crate::testing::{FakeInstance, Reply, eventually, fleet, one_variant, variant};

    #[tokio::test]
    async fn the_template_is_known_soon_after_an_engine_that_loads_can_tell_it() {
        let engine = FakeInstance::start().await;
        engine.answer("/metrics", Reply::Http(200, "vllm:num_requests_running{engine=\"0\"} 0\n".to_owned()));
        engine.answer("/version", Reply::Http(200, "{\"version\":\"0.32.0\"}".to_owned()));
        engine.answer("/v1/models", Reply::status(503));
        engine.answer("/tokenize", Reply::status(503));
        let quick = "health: {interval: 10ms, timeout: 40ms}, engine_metrics: {interval: 10ms},";
        let fleet = fleet(&one_variant(quick, &[&format!("{{url: '{}'}}", engine.url())]));
        let variant = variant(&fleet);
        let _tasks = fleet.spawn();
        let report = || variant.instances(variant.clock().now()).remove(0).instance.engine();
        eventually("asked", || report().version.is_some()).await;
        assert_eq!((report().template, fleet.is_known()), (None, false));

        engine.answer("/v1/models", Reply::models(&["m"]));
        eventually("asked to render", || engine.asked().iter().any(|head| head.starts_with("POST /tokenize "))).await;
        engine.answer("/tokenize", Reply::Http(200, "{\"count\":2,\"tokens\":[1,2]}".to_owned()));
        eventually("rendered", || report().template.is_some()).await;
        assert!(fleet.is_known());
    }

    #[test]
    fn of_a_version_a_short_line_is_kept() {
        let told = |version: &str| line(&json!({ "version": version }), "/version");
        assert_eq!(told("0.32.0").as_deref(), Some("0.32.0"));
        assert_eq!(told("b6100\nbuilt with love").as_deref(), Some("b6100"));
        assert_eq!(told(&"é".repeat(1_000)).as_deref(), Some(&*"é".repeat(100)));
        assert_eq!((told(""), line(&json!({ "version": 1 }), "/version")), (None, None));
    }
}
