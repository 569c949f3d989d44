//! What the router answers itself, and what it does when nobody else can.

use std::collections::BTreeSet;
use std::time::Duration;

use isotherm_fleet::InstanceName;

use crate::client::{chat, get, post};
use crate::origin::{Origin, json, nobody};
use crate::router::Router;
use crate::stopwatch::Stopwatch;

/// An instance that lists these models and answers everything else.
async fn listing(models: &'static str) -> Origin {
    Origin::start(move |seen| {
        let body = if seen.line.starts_with("GET /v1/models ") { models } else { "{}" };
        vec![crate::origin::Step::Send(json(200, body).into_bytes())]
    })
    .await
}

const LLAMA: &str = r#"{"id":"meta/llama", "object":"model","max_model_len":8192}"#;

#[tokio::test]
async fn models_are_the_union_even_while_an_instance_is_down() {
    let one = listing(r#"{"object":"list","data":[{"id":"meta/llama", "object":"model","max_model_len":8192}]}"#).await;
    let other = listing(r#"{"object":"list","data":[{"id":"meta/llama","x":1},{"id":"qwen"}]}"#).await;
    let router = Router::before_urls(&[one.url(), other.url(), format!("http://{}", nobody())], "");
    let _tasks = router.fleet.spawn();
    let expected = format!(r#"{{"object":"list","data":[{LLAMA},{{"id":"qwen"}}]}}"#);
    let started = Stopwatch::start();
    loop {
        let answer = router.ask(get("/v1/models")).await;
        if answer.text() == expected {
            assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{answer:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for path in ["/v1/models/meta/llama", "/v1/models/meta%2Fllama"] {
        assert_eq!(router.ask(get(path)).await.text(), LLAMA);
    }
    assert_eq!(router.ask(get("/v1/models/gpt")).await.status, 404);
    // Only one instance lists it; and nobody lists the last.
    let asking = |model: &str| post("/v1/completions", &format!(r#"{{"model":"{model}","prompt":"x"}}"#));
    for _ in 0..4 {
        assert_eq!(router.ask(asking("qwen")).await.header("x-isotherm-instance"), Some("b"));
    }
    // The third has never said what it serves, so it is asked until it is known to be down.
    let started = Stopwatch::start();
    loop {
        let answer = router.ask(asking("gpt")).await;
        if answer.status == 404 {
            assert!(answer.text().contains(r#""code":"model_not_found""#), "{}", answer.text());
            break;
        }
        assert!(answer.status == 503 && started.elapsed() < Duration::from_secs(10), "{answer:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
        let _ = router.fleet.remove_instance(
            isotherm_fleet::InstanceName { id: "c", endpoint: None, variant: None },
            isotherm_fleet::IfLast::Keep,
        );
    }
    // On native paths the model is just part of the key.
    assert_eq!(router.ask(post("/invocations", r#"{"model":"gpt"}"#)).await.status, 200);
}

#[tokio::test]
async fn when_all_are_down_the_answer_is_503_at_once() {
    let router = Router::before_urls(&[nobody(), nobody()].map(|address| format!("http://{address}")), "");
    assert_eq!(router.ask(chat("x")).await.status, 503);
    for (path, status) in [("/ping", 503), ("/health", 200), ("/v1/models", 503)] {
        assert_eq!(router.ask(get(path)).await.status, status, "{path}");
    }
    let started = Stopwatch::start();
    let answer = router.ask(chat("x")).await;
    // Ten times the promise of 50 ms.
    assert!(started.elapsed() < Duration::from_millis(500), "{:?}", started.elapsed());
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert!(answer.header("retry-after-ms").is_some() && answer.header("x-should-retry").is_none());
    assert!(answer.text().contains(r#""type":"service_unavailable""#), "{}", answer.text());
}

#[tokio::test]
async fn health_and_ping_answer_get_and_head() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    for path in ["/ping", "/health"] {
        let answer = router.ask(get(path)).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, ""), "{path}");
        let mut client = router.connect().await;
        client.send(format!("HEAD {path} HTTP/1.1\r\nhost: r\r\nconnection: close\r\n\r\n")).await;
        client.until("\r\n\r\n").await;
        assert!(client.so_far().starts_with("HTTP/1.1 200"), "{}", client.so_far());
    }
    assert!(origin.seen().is_empty());
}

#[tokio::test]
async fn without_any_instance_the_answer_is_503() {
    let router = Router::with_variant("        instances: []\n", "");
    assert_eq!(router.ask(chat("x")).await.status, 503);
}

#[tokio::test]
async fn models_beyond_a_hundred_leave_no_series_and_no_connection_behind() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let series = || {
        let text = router.metrics.expose(None).body;
        text.lines()
            .filter_map(|line| line.rsplit_once(' '))
            .map(|(series, _)| series.to_owned())
            .collect::<BTreeSet<_>>()
    };
    let mut client = router.connect().await;
    let mut before = BTreeSet::new();
    for number in 0..2_000 {
        client.send(post("/v1/completions", &format!(r#"{{"model":"adapter-{number}","prompt":"x"}}"#))).await;
        assert_eq!(client.answer().await.status, 200);
        if number == 101 {
            before = series();
        }
    }
    router.idle().await;
    let new: Vec<String> = series().difference(&before).cloned().collect();
    assert!(new.is_empty() && origin.connections() == 1, "{new:?}");
}

#[tokio::test]
async fn while_every_instance_is_drained_the_answer_is_503_and_no_overload() {
    let origins = [Origin::answering(&json(200, "{}")).await, Origin::answering(&json(200, "{}")).await];
    let router = Router::before(&[&origins[0], &origins[1]], "");
    let drain = |draining| {
        for id in ["a", "b"] {
            router.fleet.set_draining(InstanceName { id, endpoint: None, variant: None }, draining).unwrap();
        }
    };
    drain(true);
    let answer = router.ask(chat("x")).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    drain(false);
    assert_eq!(router.ask(chat("x")).await.status, 200);
}
