//! A client that leaves frees its instance within 100 ms, wherever its request is.

use std::time::Duration;

use crate::client::{Client, chat, until};
use crate::origin::{EVENTS, Origin, Step, chunk};
use crate::router::Router;
use crate::stopwatch::Stopwatch;

/// Ten times the promise of 100 ms: machines that run tests are busy.
const BOUND: Duration = Duration::from_secs(1);

async fn hanging(begun: &str) -> (Origin, Router) {
    let steps = vec![Step::Send(begun.as_bytes().to_vec()), Step::Hang];
    let origin = Origin::start(move |_| steps.clone()).await;
    let router = Router::before(&[&origin], "");
    (origin, router)
}

/// Sees that the instance is free soon after `gone`, and that the client was counted at its stage.
async fn is_freed(origin: &Origin, router: &Router, gone: Stopwatch, stage: &str) {
    origin.left().await;
    let took = gone.elapsed();
    assert!(took < BOUND, "{took:?}");
    router.idle().await;
    router.counts("isotherm_client_disconnects_total", &[stage], 1.0).await;
    router.counts("isotherm_in_flight", &[], 0.0).await;
    router.counts("isotherm_requests_total", &["4xx"], 1.0).await;
}

async fn asking(router: &Router) -> Client {
    let mut client = router.connect().await;
    client.send(chat("x")).await;
    client
}

#[tokio::test]
async fn during_prefill() {
    let (origin, router) = hanging("").await;
    let client = asking(&router).await;
    origin.asked(1).await;
    let gone = Stopwatch::start();
    drop(client);
    is_freed(&origin, &router, gone, "prefill").await;
}

#[tokio::test]
async fn during_prefill_behind_a_head_that_came_early() {
    let (origin, router) = hanging(&(EVENTS.to_owned() + &chunk(": hold on\n\n"))).await;
    let client = asking(&router).await;
    origin.asked(1).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let gone = Stopwatch::start();
    drop(client);
    is_freed(&origin, &router, gone, "prefill").await;
}

#[tokio::test]
async fn within_a_stream() {
    let (origin, router) = hanging(&(EVENTS.to_owned() + &chunk("data: 1\n\n"))).await;
    let mut client = asking(&router).await;
    client.until("data: 1\n\n").await;
    let gone = Stopwatch::start();
    drop(client);
    is_freed(&origin, &router, gone, "response").await;
}

#[tokio::test]
async fn while_waiting_for_an_answer_that_is_no_stream() {
    let (origin, router) = hanging("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{").await;
    let mut client = asking(&router).await;
    client.until("\r\n\r\n{").await;
    let gone = Stopwatch::start();
    drop(client);
    is_freed(&origin, &router, gone, "response").await;
}

#[tokio::test]
async fn having_closed_only_its_own_side() {
    let (origin, router) = hanging("").await;
    let mut client = asking(&router).await;
    origin.asked(1).await;
    let gone = Stopwatch::start();
    tokio::io::AsyncWriteExt::shutdown(&mut client.stream).await.unwrap();
    is_freed(&origin, &router, gone, "prefill").await;
}

#[tokio::test]
async fn having_sent_a_further_request_already() {
    for early in [true, false] {
        let (origin, router) = hanging(&(EVENTS.to_owned() + &chunk("data: 1\n\n"))).await;
        let mut client = router.connect().await;
        if early {
            client.send(chat("x") + &chat("y")).await;
        } else {
            client.send(chat("x")).await;
            origin.asked(1).await;
            client.send(chat("y")).await;
        }
        client.until("data: 1\n\n").await;
        let gone = Stopwatch::start();
        drop(client);
        origin.left().await;
        let took = gone.elapsed();
        assert!(took < BOUND, "{took:?}");
        router.idle().await;
        assert_eq!(origin.seen().len(), 1, "the further request is not sent");
        router.counts("isotherm_client_disconnects_total", &["response"], 1.0).await;
    }
}

#[tokio::test]
async fn during_the_upload_no_instance_is_asked() {
    let (origin, router) = hanging("").await;
    let mut client = router.connect().await;
    client.send("POST /v1/chat/completions HTTP/1.1\r\nhost: r\r\ncontent-length: 1000\r\n\r\n{\"model\":").await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(client);
    router.counts("isotherm_requests_total", &["4xx"], 1.0).await;
    router.counts("isotherm_client_disconnects_total", &["upload"], 1.0).await;
    router.counts("isotherm_client_connections", &[], 0.0).await;
    assert!(origin.seen().is_empty());
}

#[tokio::test]
async fn in_the_queue() {
    let steps = vec![Step::Hang];
    let origin = Origin::start(move |_| steps.clone()).await;
    let instance = format!("        instances: [{{ id: a, url: \"{}\", max_in_flight: 1 }}]\n", origin.url());
    let router = Router::with_variant(&instance, "");
    let first = asking(&router).await;
    origin.asked(1).await;
    let second = asking(&router).await;
    waiting(&router, 1.0).await;
    drop(second);
    waiting(&router, 0.0).await;
    router.counts("isotherm_client_disconnects_total", &["queue"], 1.0).await;
    let gone = Stopwatch::start();
    drop(first);
    origin.left().await;
    let took = gone.elapsed();
    assert!(took < BOUND, "{took:?}");
    router.idle().await;
    assert_eq!(origin.seen().len(), 1);
}

async fn waiting(router: &Router, requests: f64) {
    router.counts("isotherm_waiting_requests", &[], requests).await;
}

#[tokio::test]
async fn while_connecting() {
    // Nobody accepts, and the backlog is full: connecting takes for ever.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut fillers = Vec::new();
    for _ in 0..4 {
        let connecting = tokio::net::TcpStream::connect(address);
        fillers.push(tokio::time::timeout(Duration::from_millis(50), connecting).await);
    }
    let router = Router::before_urls(&[format!("http://{address}")], "timeouts: { connect: 30s }\n");
    let client = asking(&router).await;
    in_flight(&router, 1).await;
    drop(client);
    in_flight(&router, 0).await;
    router.counts("isotherm_client_disconnects_total", &["prefill"], 1.0).await;
}

async fn in_flight(router: &Router, requests: u32) {
    let counted = || router.instances().iter().map(|one| one.in_flight).sum::<u32>();
    until("as many are in flight as there have to be", || counted() == requests).await;
}

#[tokio::test]
async fn many_at_random_moments_leak_nothing() {
    let steps = vec![
        Step::Send(EVENTS.into()),
        Step::Pause(Duration::from_millis(3)),
        Step::Send(chunk("data: 1\n\n").into_bytes()),
        Step::Hang,
    ];
    let origin = Origin::start(move |_| steps.clone()).await;
    let instance = format!("        instances: [{{ id: a, url: \"{}\", max_in_flight: 8 }}]\n", origin.url());
    let router = Router::with_variant(&instance, "");
    let mut leaving = tokio::task::JoinSet::new();
    let turns = std::sync::Arc::new(tokio::sync::Semaphore::new(200));
    for number in 0..10_000u64 {
        let (address, turns) = (router.address, std::sync::Arc::clone(&turns));
        leaving.spawn(async move {
            let _turn = turns.acquire().await.unwrap();
            let mut client = Client::connect(address).await;
            let request = chat(&format!("{number}"));
            let cut = if number % 5 == 0 { request.len() / 2 } else { request.len() };
            client.send(&request[..cut]).await;
            tokio::time::sleep(Duration::from_micros(number * 7_919 % 12_000)).await;
        });
    }
    while leaving.join_next().await.is_some() {}
    router.accepts_all().await;
    router.idle().await;
    waiting(&router, 0.0).await;
    router.counts("isotherm_client_connections", &[], 0.0).await;
    router.counts("isotherm_in_flight", &[], 0.0).await;
}
