//! `ADAPTIVE` from outside: prompts go where their beginnings are, by what has really become of earlier requests.

use isotherm_core::Evidence;
use isotherm_proxy::{Explanation, Question, Rules, explain};

use crate::client::{Answer, post};
use crate::origin::{END, EVENTS, Origin, Step, chunk, json};
use crate::router::{Router, load};

const ROUTING: &str = "        routing: { strategy: ADAPTIVE }\n";
const USAGE: &str =
    r#""usage":{"prompt_tokens":2000,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":1900}}"#;

fn router(origins: &[&Origin]) -> Router {
    let instances: String = ('a'..='z')
        .zip(origins)
        .map(|(id, origin)| format!("          - {{ id: {id}, url: \"{}\" }}\n", origin.url()))
        .collect();
    Router::with_variant(&format!("{ROUTING}        instances:\n{instances}"), "")
}

/// Instances that answer with a stream and its usage.
async fn streaming(count: usize) -> Vec<Origin> {
    let stream = EVENTS.to_owned()
        + &chunk("data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n")
        + &chunk(&format!("data: {{\"choices\":[],{USAGE}}}\n\ndata: [DONE]\n\n"))
        + END;
    let mut origins = Vec::new();
    for _ in 0..count {
        origins.push(Origin::answering(&stream).await);
    }
    origins
}

/// About 2,000 tokens, and a question about them.
fn body(question: &str) -> String {
    let document = "policy, ".repeat(1_000);
    format!(
        r#"{{"messages":[{{"role":"system","content":"{document}"}},{{"role":"user","content":"{question}"}}],"stream":true}}"#
    )
}

fn ask(question: &str) -> String {
    post("/v1/chat/completions", &body(question))
}

fn told(answer: &Answer) -> (String, String) {
    let header = |name| answer.header(name).expect("decisions are exposed").to_owned();
    (header("x-isotherm-instance"), header("x-isotherm-reason"))
}

fn explained(router: &Router, question: &str) -> Explanation {
    let rules = Rules::of(&load(&router.directory().join("isotherm.yaml")).unwrap());
    let body = body(question);
    let question = Question { path: None, body: body.as_bytes(), tenant_id: None, tenant: None };
    explain(&router.fleet, &rules, &question).unwrap()
}

/// How much each instance is believed to hold of the document, by its id.
fn held(router: &Router) -> Vec<(String, u64)> {
    let places = explained(router, "another?").order;
    let mut held: Vec<_> =
        places.into_iter().map(|place| (place.instance, place.score.expect("a score").held_bytes)).collect();
    held.sort();
    held
}

fn nobody_holds_anything(router: &Router) -> bool {
    held(router).iter().all(|(_, bytes)| *bytes == 0)
}

#[tokio::test]
async fn questions_about_one_document_go_where_it_is() {
    let origins = streaming(4).await;
    let router = router(&origins.iter().collect::<Vec<_>>());
    let (first, reason) = told(&router.ask(ask("0?")).await);
    assert_eq!(reason, "cold");
    for question in 1..8 {
        let answer = router.ask(ask(&format!("{question}?"))).await;
        assert_eq!(told(&answer), (first.clone(), "warm".to_owned()));
    }
    router.idle().await;
    router.counts("isotherm_cached_tokens_total", &[], 8.0 * 1_900.0).await;
    let expected = router.metric("isotherm_expected_cached_tokens_total", &["arm=\"strategy\""]);
    assert!((6.0 * 1_900.0..8.0 * 2_000.0).contains(&expected), "{expected}");
    router.counts("isotherm_decisions_total", &["ADAPTIVE", "warm"], 7.0).await;
    router.fleet.refresh_gauges();
    assert!(router.metric("isotherm_index_bytes", &[]) > 500.0);
    let explained = explained(&router, "one more?");
    let score = explained.order[0].score.unwrap();
    assert_eq!((explained.order[0].instance.as_str(), score.chosen), (first.as_str(), true));
    assert!(score.held_bytes > 7_900 && score.waiting_tokens == 0 && score.uncached_tokens < 40, "{score:?}");
}

#[tokio::test]
async fn documents_spread_and_chats_stay() {
    let origins = streaming(4).await;
    let router = router(&origins.iter().collect::<Vec<_>>());
    let mut homes = std::collections::BTreeSet::new();
    for user in 0..16 {
        let turn = |more: &str| {
            let begun = format!("user {user}: {}", "tell me ".repeat(500));
            post(
                "/v1/chat/completions",
                &format!(r#"{{"messages":[{{"role":"user","content":"{begun}"}}{more}],"stream":true}}"#),
            )
        };
        let (home, _) = told(&router.ask(turn("")).await);
        let more = r#",{"role":"assistant","content":"hi"},{"role":"user","content":"go on"}"#;
        assert_eq!(told(&router.ask(turn(more)).await), (home.clone(), "warm".to_owned()));
        homes.insert(home);
    }
    assert!(homes.len() > 1, "{homes:?}");
}

#[tokio::test]
async fn a_whole_answer_confirms_as_a_stream_does() {
    let origin = Origin::answering(&json(200, &format!("{{\"choices\":[],{USAGE}}}"))).await;
    let router = router(&[&origin]);
    assert_eq!(router.ask(ask("0?")).await.status, 200);
    router.idle().await;
    assert!(held(&router)[0].1 > 7_900);
}

#[tokio::test]
async fn what_failed_left_nothing_behind() {
    let failing = Origin::answering(&json(500, "{}")).await;
    let refusing = Origin::answering(&json(429, "{}")).await;
    let error = EVENTS.to_owned() + &chunk("data: {\"error\":{\"code\":400,\"message\":\"too long\"}}\n\n") + END;
    let erring = Origin::answering(&error).await;
    let breaking = {
        let steps = [Step::Send((EVENTS.to_owned() + &chunk(": wait\n\n")).into_bytes()), Step::Close];
        Origin::start(move |_| steps.to_vec()).await
    };
    for origin in [failing, refusing, erring, breaking] {
        let router = router(&[&origin]);
        router.ask(ask("0?")).await;
        router.idle().await;
        assert!(nobody_holds_anything(&router), "{:?}", origin.seen()[0].line);
        assert_eq!(explained(&router, "1?").order[0].score.unwrap().waiting_tokens, 0);
    }
}

#[tokio::test]
async fn a_client_that_leaves_before_the_first_token_leaves_nothing_behind() {
    let origin = Origin::start(|_| vec![Step::Hang]).await;
    let router = router(&[&origin]);
    let mut client = router.connect().await;
    client.send(ask("0?")).await;
    origin.asked(1).await;
    let waiting = explained(&router, "1?").order[0].score.unwrap();
    assert!(waiting.held_bytes > 7_900 && waiting.waiting_tokens > 1_000, "it is on its way: {waiting:?}");
    drop(client);
    router.idle().await;
    assert!(nobody_holds_anything(&router));
}

#[tokio::test]
async fn a_process_that_is_gone_takes_its_cache_with_it() {
    let mut origins = streaming(2).await;
    let router = router(&origins.iter().collect::<Vec<_>>());
    let (warm, _) = told(&router.ask(ask("0?")).await);
    let address = origins.remove(usize::from(warm == "b")).address;
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let (other, reason) = told(&router.ask(ask("1?")).await);
    assert!(other != warm && reason == "retry", "{other} {reason}");
    router.idle().await;
    let held = held(&router);
    assert!(held.iter().all(|(id, bytes)| (*bytes == 0) == (*id == warm)), "{held:?}");

    // It is back, and empty: the document stays where it went.
    let one = router.instances().into_iter().find(|one| one.instance.id().as_str() == warm).unwrap();
    let (topology, now) = (router.fleet.topology(), router.fleet.clock().now());
    topology.variants().next().unwrap().observe(one.generation, Evidence::ProbeAnswered, now);
    assert_eq!(told(&router.ask(ask("2?")).await), (other, "warm".to_owned()));
}

#[tokio::test]
async fn who_waits_for_room_is_placed_by_its_prompt() {
    let origins = streaming(2).await;
    let instances: String = ["a", "b"]
        .iter()
        .zip(&origins)
        .map(|(id, origin)| format!("          - {{ id: {id}, url: \"{}\", max_in_flight: 1 }}\n", origin.url()))
        .collect();
    let top = "limits: { queue: { max_waiting: 64, timeout: 10s } }\n";
    let router = Router::with_variant(&format!("{ROUTING}        instances:\n{instances}"), top);
    let (_, reason) = told(&router.ask(ask("0?")).await);
    assert_eq!(reason, "cold");
    let mut clients = Vec::new();
    for question in 1..=20 {
        let mut client = router.connect().await;
        client.send(ask(&format!("{question}?"))).await;
        clients.push(client);
    }
    for mut client in clients {
        let answer = client.answer().await;
        assert_eq!(answer.status, 200);
        let (_, reason) = told(&answer);
        assert!(matches!(reason.as_str(), "warm" | "cold"), "{reason}");
    }
    assert!(router.metric("isotherm_decisions_total", &["ADAPTIVE", "warm"]) >= 18.0);
}

#[tokio::test]
async fn native_requests_of_a_known_form_share_as_the_engine_does() {
    let origins = streaming(3).await;
    let router = router(&origins.iter().collect::<Vec<_>>());
    let (home, _) = told(&router.ask(post("/invocations", &body("0?"))).await);
    let reordered = body("1?").replacen('{', r#"{"temperature":0.5,"#, 1);
    assert_eq!(told(&router.ask(post("/invocations", &reordered)).await), (home, "warm".to_owned()));
}

#[tokio::test]
async fn what_has_no_text_goes_to_the_least_busy() {
    let origins = streaming(2).await;
    let router = router(&origins.iter().collect::<Vec<_>>());
    let (_, reason) = told(&router.ask(post("/v1/chat/completions", r#"{"messages":[]}"#)).await);
    assert_eq!(reason, "least_outstanding");
}
