//! Tests of explaining, against a fleet that was never asked anything.

use std::sync::Arc;

use isotherm_config::{Config, Environment, Health, Overrides};
use isotherm_core::RouteRequest;
use isotherm_fleet::{Clock, ComponentKind, ManagedComponent, ManagedEndpoint, ManagedInstance};
use isotherm_telemetry::Metrics;

use super::*;

fn fleet(strategy: &str) -> (Fleet, Rules) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("isotherm.yaml");
    let text = format!(
        "endpoints:\n  - name: chat\n    variants:\n      - name: AllTraffic\n        routing: {{ {strategy} }}\n        \
         instances:\n          - {{ id: a, url: \"http://10.0.0.1:1\" }}\n          - {{ id: b, url: \
         \"http://10.0.0.2:1\", max_in_flight: 1 }}\n          - {{ id: c, url: \"http://10.0.0.3:1\" }}\n"
    );
    std::fs::write(&file, text).unwrap();
    let config = Config::load(Some(&file), &Environment::default(), &Overrides::default()).unwrap();
    let fleet = Fleet::new(&config, Arc::new(Metrics::new("test")), Clock::start());
    (fleet, Rules::of(&config))
}

fn question(body: &str) -> Question<'_> {
    Question { path: None, body: body.as_bytes(), tenant_id: None, tenant: None }
}

const CHAT: &str = r#"{"model":"m","messages":[{"role":"user","content":"policy, then a question"}]}"#;

#[test]
fn it_tells_what_a_real_decision_would_be() {
    let (fleet, rules) = fleet("prefix_length: 6, concurrency_threshold: 2");
    let explanation = explain(&fleet, &rules, &question(CHAT)).unwrap();
    assert_eq!((explanation.path.as_str(), explanation.path_assumed), ("/v1/chat/completions", true));
    let prefix = explanation.prefix.as_ref().unwrap();
    assert_eq!((prefix.unit, prefix.text_length, prefix.covers_everything), (Unit::Characters, 23, false));
    let key =
        isotherm_core::PrefixKey::from_u128(u128::from_str_radix(explanation.key.as_deref().unwrap(), 16).unwrap());
    let topology = fleet.topology();
    let variant = topology.variants().next().unwrap();
    let request = RouteRequest { key: Some(key), ..RouteRequest::default() };
    let chosen = variant.choose(&request, fleet.clock().now(), &mut rand_pcg::Pcg64::new(1, 1)).unwrap();
    assert_eq!(chosen.decision.chosen.as_str(), explanation.home().unwrap().instance);
    assert_eq!(explanation.order.len(), 3);
    let again = explain(&fleet, &rules, &question(CHAT)).unwrap();
    assert_eq!(again.home().unwrap().in_flight, 1, "explaining counts nothing by itself");
}

#[test]
fn a_text_within_the_prefix_is_told_to_have_a_home_of_its_own() {
    let (fleet, rules) = fleet("prefix_length: 4096");
    let short = question(r#"{"inputs":"a policy and a question","parameters":{"max_new_tokens":5}}"#);
    let explanation = explain(&fleet, &rules, &short).unwrap();
    assert_eq!((explanation.path.as_str(), explanation.path_assumed), ("/invocations", true));
    assert_eq!(explanation.prefix.as_ref().unwrap().unit, Unit::Bytes);
    assert!(explanation.prefix.as_ref().unwrap().covers_everything);
    let text = explanation.to_string();
    assert!(text.contains("other questions about the same text have other homes"), "{text}");
    assert!(text.contains("(assumed from the body)") && text.contains("bytes of the body"), "{text}");
}

#[test]
fn it_tells_of_breakpoints_and_of_canonical_forms() {
    let (fleet, rules) = fleet("prefix_length: 4096, canonical_json: true");
    let marked = question(
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"policy","cache_control":{"type":"ephemeral"}},
            {"type":"text","text":"question"}]}]}"#,
    );
    let explanation = explain(&fleet, &rules, &Question { path: Some("/v1/messages"), ..marked }).unwrap();
    let prefix = explanation.prefix.as_ref().unwrap();
    assert_eq!((prefix.text_length, prefix.breakpoint, prefix.covers_everything), (14, Some(6), false));
    let text = explanation.to_string();
    assert!(text.contains("14 characters; the prefix ends at the client's breakpoint, behind 6"), "{text}");
    let keys = [r#"{"inputs":"x","n":1}"#, r#"{ "n": 1, "inputs": "x" }"#].map(|body| {
        let explanation = explain(&fleet, &rules, &question(body)).unwrap();
        assert_eq!(explanation.prefix.as_ref().unwrap().unit, Unit::CanonicalBytes);
        explanation.key.unwrap()
    });
    assert_eq!(keys[0], keys[1]);
}

#[test]
fn it_tells_when_a_request_would_spill() {
    let (fleet, rules) = fleet("prefix_length: 6, concurrency_threshold: 2");
    let text = explain(&fleet, &rules, &question(CHAT)).unwrap().to_string();
    assert!(text.contains("spill      to ") && text.contains("it does not now: 0 in flight"), "{text}");
}

#[test]
fn strategies_without_keys_say_so() {
    let (fleet, rules) = fleet("strategy: RANDOM");
    let explanation = explain(&fleet, &rules, &question(CHAT)).unwrap();
    assert_eq!((explanation.key.as_deref(), explanation.prefix.clone()), (None, None));
    assert!(explanation.to_string().contains("does not look at prefixes"));
}

#[test]
fn the_path_follows_from_the_body_unless_it_is_given() {
    for (body, path) in [
        (r#"{"prompt":"x"}"#, "/v1/completions"),
        (r#"{"input":"x"}"#, "/v1/responses"),
        (r#"{"inputs":"x"}"#, "/invocations"),
        ("no json", "/invocations"),
    ] {
        assert_eq!(likely_path(body.as_bytes()), path, "{body}");
    }
    let (fleet, rules) = fleet("prefix_length: 6");
    let at = |path| explain(&fleet, &rules, &Question { path: Some(path), ..question(CHAT) });
    assert!(!at("/v1/messages").unwrap().path_assumed);
    for path in ["/v1/models", "/health", "/nowhere"] {
        assert_eq!(at(path), Err(ExplainError::Path(path.into())));
    }
    assert!(matches!(
        explain(&fleet, &rules, &Question { path: Some("/v1/chat/completions"), ..question("no json") }),
        Err(ExplainError::Malformed(_))
    ));
}

#[test]
fn sagemakers_paths_are_explained_by_the_endpoint_that_they_name() {
    let (fleet, rules) = fleet("prefix_length: 6");
    let url = || "http://10.0.0.9:1".parse().unwrap();
    let copy = |id: &str| ManagedInstance { host: Some("host".into()), ..ManagedInstance::new(id, url()) };
    let component = |name: &str, kind| {
        let (name, production_variant) = (name.parse().unwrap(), "AllTraffic".parse().unwrap());
        ManagedComponent { name, production_variant, kind }
    };
    let (routing, health) = (rules_of("prefix_length: 9"), Health::default());
    let base = ComponentKind::Base { routing, health, copies: vec![copy("one"), copy("two")] };
    let adapter = ComponentKind::Adapter { base: "llama".parse().unwrap(), copies: vec!["two".into()] };
    let managed = ManagedEndpoint {
        name: "ics".into(),
        variants: Vec::new(),
        shadow: None,
        components: Some(vec![component("llama", base), component("sql", adapter)]),
        async_output: None,
    };
    fleet.put_endpoint(&managed).unwrap();
    let at = |path: &str| explain(&fleet, &rules, &Question { path: Some(path), ..question(CHAT) });

    let native = at("/endpoints/chat/invocations").unwrap();
    assert_eq!((native.endpoint.as_str(), native.prefix.unwrap().unit), ("chat", Unit::Bytes));
    let openai = at("/endpoints/chat/openai/v1/chat/completions").unwrap();
    assert_eq!((openai.prefix.unwrap().unit, openai.order.len()), (Unit::Characters, 3));
    let llama = at("/endpoints/ics/inference-components/llama/openai/v1/chat/completions").unwrap();
    assert_eq!((llama.variant.as_str(), llama.prefix.unwrap().prefix_length), ("AllTraffic/llama", 9));
    let sql = at("/endpoints/ics/inference-components/sql/openai/v1/chat/completions").unwrap();
    let eligible: Vec<_> = sql.order.iter().filter(|place| place.eligible).map(|place| &*place.instance).collect();
    assert!(eligible == ["two"] && sql.key != llama.key);

    let missing = ExplainError::Component("ics".into());
    assert_eq!(at("/endpoints/ics/invocations"), Err(missing.clone()));
    assert_eq!(at("/endpoints/ics/inference-components/x/openai/v1/chat/completions"), Err(missing));
    assert_eq!(at("/endpoints/nope/invocations"), Err(ExplainError::NoEndpoint("nope".into())));
}

/// The routing that a configuration with this line has.
fn rules_of(strategy: &str) -> Routing {
    let (fleet, _) = fleet(strategy);
    let topology = fleet.topology();
    topology.variants().next().unwrap().routing()
}

#[test]
fn an_explanation_survives_the_wire() {
    let (fleet, rules) = fleet("prefix_length: 6");
    let explanation = explain(&fleet, &rules, &Question { tenant_id: Some("t-1"), ..question(CHAT) }).unwrap();
    let json = serde_json::to_string(&explanation).unwrap();
    assert!(!json.contains("question"), "no text is told: {json}");
    assert_eq!(serde_json::from_str::<Explanation>(&json).unwrap(), explanation);
}

#[test]
fn adaptive_tells_what_each_instance_is_believed_to_hold_and_its_score() {
    let (fleet, rules) = fleet("strategy: ADAPTIVE");
    let body = |question: &str| {
        let document = "policy ".repeat(2_000);
        format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{document}{question}"}}]}}"#)
    };
    let cold = explain(&fleet, &rules, &question(&body("one?"))).unwrap();
    assert!(cold.prompt_bytes.is_some_and(|bytes| (14_000..14_100).contains(&bytes)), "{cold:?}");
    assert!(cold.order.iter().all(|place| place.score.is_some_and(|score| score.held_bytes == 0)));

    let read = Read::new(body("one?").into(), Form::Api(Api::ChatCompletions), Look::Blocks, rules.hash_seed).unwrap();
    let within = Within { endpoint: "chat", variant: "AllTraffic", ..Within::default() };
    let prompt = read.prompt.within(rules.hash_seed, &within).unwrap();
    let topology = fleet.topology();
    let variant = topology.variants().next().unwrap();
    let request = RouteRequest { prompt: Some(&prompt), ..RouteRequest::default() };
    let mut placed = variant.choose(&request, fleet.clock().now(), &mut rand_pcg::Pcg64::new(1, 1)).unwrap();
    placed.slot.first_token();
    let chosen = placed.decision.chosen.to_string();
    drop(placed);

    let warm = explain(&fleet, &rules, &question(&body("two?"))).unwrap();
    let score = warm.order[0].score.unwrap();
    assert_eq!((warm.order[0].instance.as_str(), score.chosen), (chosen.as_str(), true));
    assert!(score.held_bytes > 13_900 && score.uncached_tokens < 30, "{score:?}");
    assert!(warm.order[1..].iter().all(|place| place.score.unwrap().added_ms > score.added_ms));
    let text = warm.to_string();
    assert!(text.contains(&format!("choice     {chosen}: there the request adds the least latency")), "{text}");
    assert!(text.contains(&format!("holds {} bytes of the prompt", score.held_bytes)), "{text}");
    let json = serde_json::to_string(&warm).unwrap();
    assert_eq!(serde_json::from_str::<Explanation>(&json).unwrap(), warm);
}

#[test]
fn adaptive_says_when_there_is_no_text() {
    let (fleet, rules) = fleet("strategy: ADAPTIVE");
    let empty = explain(&fleet, &rules, &Question { path: Some("/v1/chat/completions"), ..question("{}") }).unwrap();
    assert!(empty.to_string().contains("without text, the least busy instance is chosen"), "{empty}");
}
