//! What is under way on each instance is known at once and exactly, and decides who gets the next request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use isotherm_core::Evidence;
use tokio::sync::Semaphore;

use crate::client::{Client, chat, get, post, until};
use crate::origin::{EVENTS, Origin, Step, chunk, json};
use crate::router::Router;
use crate::stopwatch::Stopwatch;

const TOKEN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";

/// Every path that passes a body on, one that is only allowed among them.
const PATHS: [&str; 11] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/messages",
    "/v1/rerank",
    "/v1/score",
    "/invocations",
    "/v1/audio/speech",
    "/endpoints/chat/invocations",
    "/endpoints/chat/invocations-response-stream",
];
const ALLOWED: &str = "allow_paths: [/v1/audio/speech]\n";
/// A body that each of them understands.
const BODY: &str =
    r#"{"messages":[],"prompt":"x","input":"x","query":"x","documents":["x"],"text_1":"x","text_2":"x"}"#;

/// Instances that never answer, or stream on for ever once they have begun.
async fn hanging(count: usize, begun: &str) -> Vec<Origin> {
    let mut origins = Vec::new();
    for _ in 0..count {
        let steps = vec![Step::Send(begun.as_bytes().to_vec()), Step::Hang];
        origins.push(Origin::start(move |_| steps.clone()).await);
    }
    origins
}

async fn answering(count: usize) -> Vec<Origin> {
    let mut origins = Vec::new();
    for _ in 0..count {
        origins.push(Origin::answering(&json(200, "{}")).await);
    }
    origins
}

fn before(origins: &[Origin], routing: &str) -> Router {
    before_with(origins, routing, "")
}

fn before_with(origins: &[Origin], routing: &str, top: &str) -> Router {
    let instances: String = ('a'..='z')
        .zip(origins)
        .map(|(id, origin)| format!("          - {{ id: {id}, url: \"{}\" }}\n", origin.url()))
        .collect();
    Router::with_variant(&format!("        routing: {{ {routing} }}\n        instances:\n{instances}"), top)
}

/// Requests that are sent at once and stay under way.
async fn under_way(router: &Router, requests: impl IntoIterator<Item = String>) -> Vec<Client> {
    let before: u32 = counts(router).values().sum();
    let mut clients = Vec::new();
    for request in requests {
        let mut client = router.connect().await;
        client.send(request).await;
        clients.push(client);
    }
    counted(router, before + clients.len() as u32).await;
    clients
}

fn counts(router: &Router) -> BTreeMap<String, u32> {
    router.instances().iter().map(|one| (one.instance.id().as_str().to_owned(), one.in_flight)).collect()
}

async fn counted(router: &Router, all: u32) {
    until(&format!("{all} in all are under way"), || counts(router).values().sum::<u32>() == all).await;
}

/// A prompt of its own, as long as a document.
fn document(number: usize) -> String {
    chat(&format!("{number} {}", "a document ".repeat(300)))
}

#[tokio::test]
async fn every_path_counts_what_is_under_way_and_gives_it_back() {
    let origins = hanging(1, "").await;
    let router = Router::before(&[&origins[0]], ALLOWED);
    for path in PATHS {
        let client = under_way(&router, [post(path, BODY)]).await;
        assert_eq!(counts(&router)["a"], 1, "{path}");
        drop(client);
        counted(&router, 0).await;
    }
}

#[tokio::test]
async fn a_burst_of_equals_uses_every_instance_on_every_path() {
    let origins = hanging(4, "").await;
    for path in PATHS {
        let router = before_with(&origins, "concurrency_threshold: 2", ALLOWED);
        let _burst = under_way(&router, vec![post(path, BODY); 32]).await;
        // A quarter above the mean is the bound, once all have as many as the threshold.
        assert!(counts(&router).values().all(|count| (2..=11).contains(count)), "{path}: {:?}", counts(&router));
    }
}

#[tokio::test]
async fn one_beginning_fills_its_homes_one_after_the_other_and_then_all_evenly() {
    let origins = hanging(8, "").await;
    let router = before(&origins, "concurrency_threshold: 10");
    let one = chat(&"the same beginning ".repeat(300));
    // A burst of 32 neither scatters nor piles up: so many instances as its threshold asks for.
    let _burst = under_way(&router, vec![one.clone(); 32]).await;
    let mut counts_now: Vec<u32> = counts(&router).into_values().collect();
    counts_now.sort_unstable();
    assert_eq!(counts_now, [0, 0, 0, 0, 2, 10, 10, 10]);
    // 480 at once use all eight, and none much more than the others.
    let _more = under_way(&router, vec![one; 448]).await;
    // At saturation, a quarter above the mean is the bound.
    let most = *counts(&router).values().max().unwrap();
    assert!(most <= 76, "{:?}", counts(&router));
    assert!(counts(&router).values().all(|&count| count >= 10), "{:?}", counts(&router));
}

#[tokio::test]
async fn a_cold_burst_of_equals_is_computed_on_few_instances_through_the_front_door() {
    let origins = hanging(8, "").await;
    let router = before(&origins, "strategy: ADAPTIVE");
    let began = Stopwatch::start();
    let one = document(0);
    let _burst = under_way(&router, vec![one; 32]).await;
    let used = counts(&router).values().filter(|&&count| count > 0).count();
    assert!(used <= 2, "{:?} within {:?}", counts(&router), began.elapsed());
}

#[tokio::test]
async fn one_busy_instance_does_not_end_the_affinity_of_others() {
    let origins = hanging(4, "").await;
    let router = before(&origins, "concurrency_threshold: 100");
    let _hot = under_way(&router, vec![document(0); 70]).await;
    let hot = counts(&router).into_iter().max_by_key(|(_, count)| *count).unwrap();
    assert_eq!(hot.1, 70, "{:?}", counts(&router));
    let quiet_origins = answering(4).await;
    let quiet = before(&quiet_origins, "concurrency_threshold: 100");
    let home = async |number| quiet.ask(document(number)).await.header("x-isotherm-instance").unwrap().to_owned();
    // Two on each of the others: 70, 2, 2, 2.
    let (mut few, mut number) = (Vec::new(), 100);
    while few.len() < 6 {
        let there = counts(&router)[&home(number).await];
        if there < 2 {
            few.extend(under_way(&router, [document(number)]).await);
        }
        number += 1;
    }
    assert!(counts(&router).values().all(|&count| matches!(count, 2 | 70)), "{:?}", counts(&router));
    // Each other document has its home where it would be without that load, and stays there.
    for number in 1..20 {
        let home = home(number).await;
        let before = counts(&router)[&home];
        let one = under_way(&router, [document(number)]).await;
        assert_eq!(counts(&router)[&home], before + 1, "document {number} is at home at {home}");
        drop(one);
        counted(&router, 76).await;
    }
}

#[tokio::test]
async fn a_busy_instance_that_holds_little_gets_no_more_than_its_share_of_cold_prompts() {
    // Streams that go on: where they run, decoding is slower and everything new waits.
    let begun = EVENTS.to_owned() + &chunk(TOKEN);
    let origins = {
        let mut origins = Vec::new();
        for _ in 0..4 {
            let (stream, whole) = (begun.clone(), json(200, "{}"));
            origins.push(
                Origin::start(move |seen| match String::from_utf8_lossy(&seen.body).contains("stays") {
                    true => vec![Step::Send(stream.clone().into_bytes()), Step::Hang],
                    false => vec![Step::Send(whole.clone().into_bytes())],
                })
                .await,
            );
        }
        origins
    };
    let router = before(&origins, "strategy: ADAPTIVE");
    // Ten streams about one small document: one busy instance with the smallest tree of all.
    let stays = |number: usize| chat(&format!("stays {} {number}", "small ".repeat(200)));
    let mut streams = Vec::new();
    for number in 0..10 {
        let mut client = router.connect().await;
        client.send(stays(number)).await;
        client.until(TOKEN).await;
        streams.push(client);
    }
    let busy = counts(&router).into_iter().max_by_key(|(_, count)| *count).unwrap();
    // The others hold much.
    let mut there = 0;
    for number in 0..80 {
        let answer = router.ask(document(number)).await;
        there += u32::from(answer.header("x-isotherm-instance") == Some(busy.0.as_str()));
    }
    assert!(busy.1 >= 5 && there <= 20, "{there} of 80 went to {busy:?}");
}

#[tokio::test]
async fn routers_that_know_nothing_of_each_other_do_not_all_pick_the_same_instance() {
    for routing in ["strategy: ADAPTIVE", "strategy: PREFIX_AWARE", "strategy: LEAST_OUTSTANDING_REQUESTS"] {
        let origins = hanging(8, "").await;
        let routers: Vec<Router> = (0..4).map(|_| before(&origins, routing)).collect();
        let mut clients = Vec::new();
        for (number, router) in routers.iter().enumerate() {
            clients.push(under_way(router, (0..16).map(|burst| document(100 * number + burst))).await);
        }
        let asked = || origins.iter().map(|origin| origin.seen().len()).collect::<Vec<_>>();
        until("all are asked", || asked().iter().sum::<usize>() == 64).await;
        let asked = asked();
        // 64 over eight: by chance alone, two thirds of them get between 5 and 11.
        assert!(asked.iter().all(|&count| count <= 16), "{routing}: {asked:?}");
        assert!(asked.iter().filter(|&&count| count >= 3).count() >= 7, "{routing}: {asked:?}");
    }
}

#[tokio::test]
async fn probes_leave_the_count_of_what_is_under_way_alone() {
    let origins = hanging(1, &(EVENTS.to_owned() + &chunk(TOKEN))).await;
    let router = Router::before(&[&origins[0]], "");
    let mut clients = under_way(&router, (0..5).map(document)).await;
    for client in &mut clients {
        client.until(TOKEN).await;
    }
    let generation = router.instances()[0].generation;
    for probe in 0..60 {
        let evidence = if probe % 20 < 10 { Evidence::ProbeFailed } else { Evidence::ProbeAnswered };
        let (topology, now) = (router.fleet.topology(), router.fleet.clock().now());
        topology.variants().next().unwrap().observe(generation, evidence, now);
        assert_eq!(counts(&router)["a"], 5, "after probe {probe}");
    }
    drop(clients);
    counted(&router, 0).await;
}

#[tokio::test]
async fn a_request_counts_where_it_runs_and_nowhere_else_once_it_was_resent() {
    let asked = Arc::new(Semaphore::new(1));
    let mut origins = Vec::new();
    for _ in 0..2 {
        let first = Arc::clone(&asked);
        let refusal = json(503, "{}");
        origins.push(
            Origin::start(move |_| match first.try_acquire() {
                Ok(once) => {
                    once.forget();
                    vec![Step::Send(refusal.clone().into_bytes())]
                }
                Err(_) => vec![Step::Hang],
            })
            .await,
        );
    }
    let router = before(&origins, "");
    let mut client = router.connect().await;
    client.send(chat("x")).await;
    until("each was asked once", || origins.iter().all(|origin| origin.seen().len() == 1)).await;
    let now: Vec<u32> = counts(&router).into_values().collect();
    assert!(now == [0, 1] || now == [1, 0], "{now:?}");
    // Its end is that of the second attempt, and of nothing else.
    drop(client);
    counted(&router, 0).await;
}

#[tokio::test]
async fn an_instance_that_accepts_and_never_answers_holds_up_only_its_own() {
    let (hangs, fine) = (hanging(1, "").await, answering(1).await);
    let origins: Vec<Origin> = hangs.into_iter().chain(fine).collect();
    let router = before(&origins, "strategy: LEAST_OUTSTANDING_REQUESTS");
    // One of these hangs; from then on there is always one more under way there.
    let mut stuck = Vec::new();
    while origins[0].seen().is_empty() {
        let (mut client, before) = (router.connect().await, origins[1].seen().len());
        client.send(chat("x")).await;
        until("one is asked", || !origins[0].seen().is_empty() || origins[1].seen().len() > before).await;
        if origins[0].seen().is_empty() {
            client.answer().await;
        }
        stuck.push(client);
    }
    let asked = Stopwatch::start();
    for number in 0..50 {
        let answer = router.ask(document(number)).await;
        assert_eq!((answer.status, answer.header("x-isotherm-instance")), (200, Some("b")));
    }
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn a_thousand_clients_that_leave_take_no_capacity_with_them() {
    let origins = hanging(1, "").await;
    let instances = format!("        instances: [{{ id: a, url: \"{}\", max_in_flight: 8 }}]\n", origins[0].url());
    let router = Arc::new(Router::with_variant(&instances, "limits: { queue: { max_waiting: 0 } }\n"));
    let turns = Arc::new(Semaphore::new(64));
    let mut leaving = tokio::task::JoinSet::new();
    for number in 0..1_000 {
        let (router, turns) = (Arc::clone(&router), Arc::clone(&turns));
        leaving.spawn(async move {
            let _turn = turns.acquire().await.unwrap();
            let mut client = router.connect().await;
            client.send(chat(&number.to_string())).await;
            tokio::time::sleep(Duration::from_micros(number % 7 * 300)).await;
        });
    }
    leaving.join_all().await;
    router.accepts_all().await;
    counted(&router, 0).await;
    // All eight places are there, and no ninth.
    let _eight = under_way(&router, (0..8).map(document)).await;
    assert_eq!(router.ask(document(9)).await.status, 429);
}

#[tokio::test]
async fn two_thousand_instances_are_no_limit() {
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let origin = Origin::start_at(everywhere, |_| vec![Step::Send(json(200, "{}").into_bytes())]).await;
    let port = origin.address.port();
    let url = |number: usize| format!("http://127.1.{}.{}:{port}", number / 200, number % 200 + 1);
    let instances: String =
        (0..2_100).map(|number| format!("          - {{ id: i{number}, url: \"{}\" }}\n", url(number))).collect();
    for strategy in ["PREFIX_AWARE", "ADAPTIVE"] {
        let variant = format!("        routing: {{ strategy: {strategy} }}\n        instances:\n{instances}");
        let router = Router::with_variant(&variant, "");
        let mut client = router.connect().await;
        let asked = Stopwatch::start();
        let mut used = std::collections::BTreeSet::new();
        for number in 0..200 {
            client.send(document(number)).await;
            used.insert(client.answer().await.header("x-isotherm-instance").unwrap().to_owned());
        }
        assert!(used.len() > 150, "{strategy}: {} instances", used.len());
        assert!(asked.elapsed() < Duration::from_secs(5), "{strategy}: {:?}", asked.elapsed());
        assert_eq!(router.ask(get("/health")).await.status, 200);
    }
}
