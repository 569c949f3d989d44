//! Where requests go: home, spill, pins, the queue, variants.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::client::{Client, chat, get, post, until};
use crate::origin::{END, EVENTS, Origin, Step, chunk, json};
use crate::router::Router;

/// Instances that answer when they get leave.
struct Slow {
    origins: Vec<Origin>,
    leave: Arc<Notify>,
}

impl Slow {
    async fn new(count: usize) -> Slow {
        let leave = Arc::new(Notify::new());
        let mut origins = Vec::new();
        for _ in 0..count {
            let leave = Arc::clone(&leave);
            let steps = move |_: &_| vec![Step::Wait(Arc::clone(&leave)), Step::Send(json(200, "{}").into_bytes())];
            origins.push(Origin::start(steps).await);
        }
        Slow { origins, leave }
    }

    async fn asked(&self, times: usize) {
        let asked = || self.origins.iter().map(|origin| origin.seen().len()).sum::<usize>();
        until(&format!("asked {times} times"), || asked() >= times).await;
    }
}

#[tokio::test]
async fn equal_beginnings_share_a_home_and_spill_in_one_order() {
    let slow = Slow::new(4).await;
    let origins: Vec<&Origin> = slow.origins.iter().collect();
    let urls: Vec<String> = origins.iter().map(|origin| origin.url()).collect();
    let instances: String =
        ('a'..='d').zip(&urls).map(|(id, url)| format!("          - {{ id: {id}, url: \"{url}\" }}\n")).collect();
    let variant =
        format!("        routing: {{ prefix_length: 6, concurrency_threshold: 2 }}\n        instances:\n{instances}");
    let router = Router::with_variant(&variant, "");
    let mut clients = Vec::new();
    for number in 0..8 {
        let mut client = router.connect().await;
        client.send(chat(&format!("policy {number}"))).await;
        slow.asked(number + 1).await;
        clients.push(client);
    }
    assert!(router.instances().iter().all(|one| one.in_flight == 2));
    let mut told = Vec::new();
    for mut client in clients {
        slow.leave.notify_waiters();
        let answer = client.answer().await;
        let header = |name| answer.header(name).unwrap().to_owned();
        told.push((header("x-isotherm-instance"), header("x-isotherm-reason"), header("x-isotherm-home")));
    }
    let home = told[0].2.clone();
    assert!(told.iter().all(|(_, _, other)| *other == home));
    let reasons: Vec<&str> = told.iter().map(|(_, reason, _)| reason.as_str()).collect();
    assert_eq!(reasons, ["home", "home", "spill", "spill", "spill", "spill", "spill", "spill"]);
    assert!(told.chunks(2).all(|pair| pair[0].0 == pair[1].0), "{told:?}");
    router.counts("isotherm_spills_total", &["threshold"], 6.0).await;
    router.counts("isotherm_decisions_total", &["home", "PREFIX_AWARE"], 2.0).await;
}

#[tokio::test]
async fn a_full_variant_lets_wait_and_serves_in_turn() {
    let slow = Slow::new(1).await;
    let instance = format!("        instances: [{{ id: a, url: \"{}\", max_in_flight: 1 }}]\n", slow.origins[0].url());
    let router = Router::with_variant(&instance, "limits: { queue: { max_waiting: 1, timeout: 5s } }\n");
    let mut first = router.connect().await;
    first.send(chat("1")).await;
    slow.asked(1).await;
    let mut second = router.connect().await;
    second.send(chat("2")).await;
    router.counts("isotherm_waiting_requests", &[], 1.0).await;
    // No room in the queue either.
    let shed = router.ask(chat("3")).await;
    assert_eq!((shed.status, shed.header("retry-after")), (429, Some("1")));
    assert!(shed.text().contains(r#""type":"rate_limit_error""#), "{}", shed.text());
    slow.leave.notify_one();
    assert_eq!(first.answer().await.status, 200);
    slow.asked(2).await;
    slow.leave.notify_one();
    assert_eq!(second.answer().await.status, 200);
    assert_eq!(slow.origins[0].seen().len(), 2);
    router.counts("isotherm_shed_requests_total", &["queue_full"], 1.0).await;
}

#[tokio::test]
async fn who_waits_too_long_is_shed() {
    let slow = Slow::new(1).await;
    let instance = format!("        instances: [{{ id: a, url: \"{}\", max_in_flight: 1 }}]\n", slow.origins[0].url());
    let router = Router::with_variant(&instance, "limits: { queue: { timeout: 50ms } }\n");
    let mut first = router.connect().await;
    first.send(chat("1")).await;
    slow.asked(1).await;
    assert_eq!(router.ask(chat("2")).await.status, 429);
    router.counts("isotherm_shed_requests_total", &["queue_timeout"], 1.0).await;
}

#[tokio::test]
async fn stored_responses_are_found_again() {
    let mut origins = Vec::new();
    for name in ["a", "b", "c", "d"] {
        origins.push(
            Origin::start(move |seen| {
                let events = EVENTS.to_owned()
                    + &chunk(&format!(
                        "event: response.created\ndata: {{\"type\":\"response.created\",\"response\":{{\"id\":\"resp_s{name}\"}}}}\n\n"
                    ))
                    + END;
                let whole = json(200, &format!(r#"{{"id":"resp_{name}","object":"response"}}"#));
                let streamed = seen.body.windows(8).any(|eight| eight == b"\"stream\"");
                vec![Step::Send(if streamed { events } else { whole }.into_bytes())]
            })
            .await,
        );
    }
    let router = Router::before(&origins.iter().collect::<Vec<_>>(), "");
    for (extra, prefix) in [("", "resp_"), (r#""stream":true,"#, "resp_s")] {
        let made = router.ask(post("/v1/responses", &format!(r#"{{{extra}"input":"first {prefix}"}}"#))).await;
        let instance = made.header("x-isotherm-instance").unwrap().to_owned();
        let id = format!("{prefix}{instance}");
        for number in 0..6 {
            let next = format!(r#"{{"previous_response_id":"{id}","input":"next {number} {prefix}"}}"#);
            let next = router.ask(post("/v1/responses", &next)).await;
            assert_eq!(next.header("x-isotherm-instance"), Some(instance.as_str()));
            assert_eq!(next.header("x-isotherm-reason"), Some("session"));
        }
        for request in [
            get(&format!("/v1/responses/{id}")),
            get(&format!("/v1/responses/{id}")).replacen("GET", "DELETE", 1),
            post(&format!("/v1/responses/{id}/cancel"), ""),
        ] {
            assert_eq!(router.ask(request).await.header("x-isotherm-instance"), Some(instance.as_str()));
        }
    }
}

#[tokio::test]
async fn the_model_leads_to_its_endpoint_and_a_header_to_its_variant() {
    let (one, other) = (Origin::answering(&json(200, "1")).await, Origin::answering(&json(200, "2")).await);
    let endpoints = format!(
        "  - name: chat\n    variants:\n      - name: one\n        instances: [{{ url: \"{}\" }}]\n      - name: other\n        weight: 0\n        instances: [{{ url: \"{}\" }}]\n",
        one.url(),
        other.url()
    );
    let router = Router::with_endpoints(&endpoints, "");
    for _ in 0..3 {
        assert_eq!(router.ask(post("/invocations", "{}")).await.text(), "1");
    }
    let to = |variant: &str| {
        post("/invocations", "{}").replacen(
            "host: router",
            &format!("host: router\r\nx-amzn-sagemaker-target-variant: {variant}"),
            1,
        )
    };
    assert_eq!(router.ask(to("other")).await.text(), "2");
    assert_eq!(router.ask(to("nothing")).await.status, 400);
}

#[tokio::test]
async fn variants_with_prefixes_of_different_length_cut_by_their_own() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let variant = |name: &str, length: u32, weight: u32| {
        format!(
            "      - name: {name}\n        weight: {weight}\n        routing: {{ prefix_length: {length} }}\n        instances: [{{ url: \"{}\" }}]\n",
            origin.url()
        )
    };
    let endpoints = format!("  - name: chat\n    variants:\n{}{}", variant("short", 2, 0), variant("long", 8, 1));
    let router = Router::with_endpoints(&endpoints, "");
    let key = async |text: &str| router.ask(chat(text)).await.header("x-isotherm-key").unwrap().to_owned();
    assert_eq!(key("policy x").await, key("policy x, then more").await);
    assert_ne!(key("policy x").await, key("policy y").await);
}

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let mut client: Client = router.connect().await;
    // All at once: answered in order.
    client.send(chat("1") + &chat("2") + &get("/health") + &chat("3")).await;
    for expected in [2, 2, 0, 2] {
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.body.len()), (200, expected));
    }
    assert_eq!((origin.seen().len(), origin.connections()), (3, 1));
}
