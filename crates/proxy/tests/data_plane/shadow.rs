//! Shadow variants: they get copies, and nobody notices.

use std::time::Duration;

use crate::client::post;
use crate::managed::{endpoint, instance, variant};
use crate::origin::{Origin, Step, json};
use crate::router::Router;

async fn with_shadow(weight: f64, shadow: &Origin, production: &Origin) -> Router {
    let router = Router::before(&[production], "");
    let mut shadowed = endpoint("shadowed", vec![variant("main", 2.0, vec![instance("m", production)])]);
    shadowed.shadow = Some(variant("dark", weight, vec![instance("d", shadow)]));
    router.fleet.put_endpoint(&shadowed).unwrap();
    router
}

fn invoke(body: &str) -> String {
    post("/endpoints/shadowed/invocations", body)
}

#[tokio::test]
async fn a_shadow_gets_the_same_request_and_its_answer_is_dropped() {
    let (production, shadow) =
        (Origin::answering(&json(200, "real")).await, Origin::answering(&json(200, "dark")).await);
    let router = with_shadow(2.0, &shadow, &production).await;
    let answer = router.ask(invoke("body")).await;
    assert_eq!((answer.text(), answer.header("x-amzn-invoked-production-variant")), ("real".into(), Some("main")));
    shadow.asked(1).await;
    let (copy, real) = (&shadow.seen()[0], &production.seen()[0]);
    assert_eq!((&copy.line, &copy.body), (&real.line, &real.body));
    assert_eq!(copy.header("content-type"), real.header("content-type"));
    router.idle().await;
    router.counts("isotherm_shadow_copies_total", &["dark", "sent"], 1.0).await;
    router.counts("isotherm_requests_total", &["variant=\"dark\"", "2xx"], 1.0).await;
    router.counts("isotherm_requests_total", &["variant=\"main\"", "2xx"], 1.0).await;
}

#[tokio::test]
async fn a_share_is_copied() {
    let (production, shadow) =
        (Origin::answering(&json(200, "real")).await, Origin::answering(&json(200, "dark")).await);
    let router = with_shadow(1.0, &shadow, &production).await;
    for number in 0..200 {
        assert_eq!(router.ask(invoke(&number.to_string())).await.status, 200);
    }
    router.idle().await;
    let sent = router.metric("isotherm_shadow_copies_total", &["sent"]);
    assert!((60.0..140.0).contains(&sent), "{sent} of 200 for half of them");
}

#[tokio::test]
async fn a_shadow_that_hangs_or_fails_holds_nothing_up() {
    let production = Origin::answering(&json(200, "real")).await;
    let hanging = Origin::start(|_| vec![Step::Hang]).await;
    let router = with_shadow(2.0, &hanging, &production).await;
    for number in 0..100 {
        let asked = router.ask(invoke(&number.to_string()));
        let answer = tokio::time::timeout(Duration::from_secs(5), asked).await.expect("held up by the shadow");
        assert_eq!(answer.text(), "real");
    }
    // Bounded: the rest were dropped.
    router.counts("isotherm_shadow_copies_total", &["sent"], 64.0).await;
    router.counts("isotherm_shadow_copies_total", &["dropped"], 36.0).await;

    let failing = Origin::answering(&json(500, "oops")).await;
    let router = with_shadow(2.0, &failing, &production).await;
    assert_eq!(router.ask(invoke("x")).await.text(), "real");
    failing.asked(1).await;
    router.idle().await;
    router.counts("isotherm_requests_total", &["variant=\"dark\"", "5xx"], 1.0).await;
}

#[tokio::test]
async fn a_shadow_without_instances_is_dropped() {
    let production = Origin::answering(&json(200, "real")).await;
    let router = Router::before(&[&production], "");
    let mut shadowed = endpoint("shadowed", vec![variant("main", 1.0, vec![instance("m", &production)])]);
    shadowed.shadow = Some(variant("dark", 1.0, Vec::new()));
    router.fleet.put_endpoint(&shadowed).unwrap();
    assert_eq!(router.ask(invoke("x")).await.text(), "real");
    router.counts("isotherm_shadow_copies_total", &["dropped"], 1.0).await;
}
