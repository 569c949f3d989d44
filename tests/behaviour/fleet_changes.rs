//! Changing the fleet while it serves: `isotherm instances`.

use std::time::Duration;

use isotherm_tests::{Client, Engines, Running, Stream, chat, document, eventually, run, set_faults, streamed_chat};
use serde_json::{Value, json};

use crate::serve;

const DOCUMENTS: u64 = 30;

#[tokio::test]
async fn an_added_instance_takes_its_share_and_nothing_else_moves() {
    let engines = Engines::start(3, &["--speed", "100"]);
    let router = serve(&engines, &[]);
    instances(&router, &["remove", "engine-2"]);
    let before = homes(&router).await;
    assert!(before.iter().all(|home| home != "engine-2"), "{before:?}");

    instances(&router, &["add", &engines.urls()[2], "--id", "engine-2"]);
    let listed = listed(&router);
    assert_eq!(listed.len(), 3);
    assert_eq!(find(&listed, "engine-2")["origin"], "api");
    let after = eventually("the new instance serves", Duration::from_secs(10), async || {
        let homes = homes(&router).await;
        homes.contains(&"engine-2".to_owned()).then_some(homes)
    })
    .await;
    for (before, after) in before.iter().zip(&after) {
        assert!(after == before || after == "engine-2", "{before} became {after}");
    }
    let moved = after.iter().filter(|home| *home == "engine-2").count();
    assert!((3..=18).contains(&moved), "{moved} of {DOCUMENTS} moved; a third should");
}

#[tokio::test]
async fn a_drained_instance_finishes_its_streams_and_comes_back() {
    let engines = Engines::start(2, &["--speed", "10"]);
    let router = serve(&engines, &[]);
    let (client, document) = (Client::new(router.url()), document(1, 1_200));
    let (stream, home) = held(&engines, &client, &document).await;

    instances(&router, &["drain", &home]);
    assert_eq!(find(&listed(&router), &home)["availability"], "draining");
    let elsewhere = client.post("/v1/chat/completions", &chat(&document, "And now?")).await.ok();
    assert_ne!(elsewhere.instance(), home);
    assert_eq!(find(&listed(&router), &home)["in_flight"], 1, "the stream must outlast the drain");
    go_on(&engines, &home).await;
    assert!(stream.rest().await.expect("the whole stream").ends_with("data: [DONE]\n\n"));

    instances(&router, &["drain", "--undo", &home]);
    let back = client.post("/v1/chat/completions", &chat(&document, "Home again?")).await.ok();
    assert_eq!(back.instance(), home);
}

#[tokio::test]
async fn a_removed_instance_finishes_its_streams() {
    let engines = Engines::start(2, &["--speed", "10"]);
    let router = serve(&engines, &[]);
    let (client, document) = (Client::new(router.url()), document(1, 1_200));
    let (stream, home) = held(&engines, &client, &document).await;

    instances(&router, &["remove", &home]);
    assert_eq!(listed(&router).len(), 1);
    let other = client.post("/v1/chat/completions", &chat(&document, "And now?")).await.ok();
    assert_eq!(other.header("x-isotherm-reason"), "single");
    go_on(&engines, &home).await;
    assert!(stream.rest().await.expect("the whole stream").ends_with("data: [DONE]\n\n"));
}

#[test]
fn an_unknown_instance_is_refused_in_words() {
    let engines = Engines::start(1, &["--speed", "100"]);
    let router = serve(&engines, &[]);
    let refused = run(&["instances", "drain", "engine-9", "--admin", router.admin()]);
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("engine-9"), "{}", refused.stderr);
}

/// A stream of minutes, whose engine then hardly goes on; and the instance that it runs on.
async fn held(engines: &Engines, client: &Client, document: &str) -> (Stream, String) {
    let stream = client.open("/v1/chat/completions", &streamed_chat(document, "Tell all!", 4_000)).await;
    let stream = stream.expect("a stream");
    let home = stream.headers["x-isotherm-instance"].to_str().expect("an id").to_owned();
    slow_down(engines, &home, 100.0).await;
    (stream, home)
}

/// Lets the engine come to the end of such a stream at once.
async fn go_on(engines: &Engines, home: &str) {
    slow_down(engines, home, 0.01).await;
}

async fn slow_down(engines: &Engines, instance: &str, factor: f64) {
    let index = (0..).zip(engines.urls()).find(|(index, _)| Engines::id(*index) == instance);
    let (_, url) = index.expect("one of the engines");
    set_faults(&url, &json!({ "slow_factor": factor })).await;
}

/// Runs `isotherm instances …` against a router.
fn instances(router: &Running, arguments: &[&str]) -> String {
    let mut command = vec!["instances"];
    command.extend_from_slice(arguments);
    command.extend_from_slice(&["--admin", router.admin()]);
    let ended = run(&command);
    assert_eq!(ended.code, Some(0), "{command:?}: {}{}", ended.stdout, ended.stderr);
    ended.stdout
}

fn listed(router: &Running) -> Vec<Value> {
    let listed: Value = serde_json::from_str(&instances(router, &["list", "--json"])).expect("JSON");
    listed["instances"].as_array().expect("a list").clone()
}

fn find<'a>(listed: &'a [Value], id: &str) -> &'a Value {
    listed.iter().find(|instance| instance["id"] == id).unwrap_or_else(|| panic!("{id} is not in {listed:?}"))
}

/// Which instance answers for each document.
async fn homes(router: &Running) -> Vec<String> {
    let client = Client::new(router.url());
    let mut homes = Vec::new();
    for number in 0..DOCUMENTS {
        let answer = client.post("/v1/chat/completions", &chat(&document(number, 1_100), "Where?")).await.ok();
        homes.push(answer.instance());
    }
    homes
}
