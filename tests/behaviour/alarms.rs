//! Alarms of the router itself: each fires on what it was made for, is told to a webhook, is resolved, and none is false.

use std::path::Path;
use std::time::Duration;

use isotherm_tests::{Client, Engines, MixedTraffic, Running, Webhook, chat, document, eventually, set_faults};
use serde_json::{Value, json};

const WITHIN: Duration = Duration::from_secs(45);

/// A router whose rules fire at once, on the last two minutes.
fn watchful(engines: &Engines, webhook: &Webhook, folder: &Path) -> Running {
    let at_once: Vec<String> = ["hit_rate", "cache_pressure", "hot_prefix", "spills", "first_token"]
        .iter()
        .chain(&["prefix_caching_off", "replicas_disagree"])
        .map(|rule| format!("  {rule}: {{ for: 0s }}\n"))
        .collect();
    let file = folder.join("isotherm.yaml");
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: '127.0.0.1:0' }}\n\
         alerts:\n  webhooks: ['{}']\n  window: 2m\n  engine_restarted: {{ within: 6s }}\n{}\
         endpoints:\n  - name: chat\n    variants:\n      - name: main\n        engine_metrics: {{ interval: 1s }}\n        \
         instances: [{}]\n",
        webhook.url(),
        at_once.concat(),
        engines.listed()
    );
    std::fs::write(&file, text).expect("the configuration");
    Running::start(&["serve", "--config", &file.to_string_lossy()])
}

/// Questions about these documents, one after another, round after round, until something is so.
async fn ask_until(router: &Running, documents: u64, tokens: usize, what: &str, mut so: impl FnMut() -> bool) {
    let client = Client::new(router.url());
    let documents: Vec<String> = (0..documents).map(|number| document(number, tokens)).collect();
    let mut round = 0;
    eventually(what, WITHIN, async || {
        for document in &documents {
            let _ = client.post("/v1/chat/completions", &chat(document, &format!("Round {round}?"))).await.ok();
        }
        round += 1;
        so().then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_engine_that_caches_nothing_is_told_and_nothing_else() {
    let (engines, webhook) = (Engines::start(3, &["--speed", "100"]), Webhook::start().await);
    set_faults(&engines.urls()[1], &json!({ "no_prefix_caching": true })).await;
    let folder = tempfile::tempdir().expect("a folder");
    let router = watchful(&engines, &webhook, folder.path());
    let fires = || webhook.told().contains(&"IsothermPrefixCachingOff firing".to_owned());
    ask_until(&router, 12, 1_200, "the webhook is told", fires).await;
    let message = &webhook.messages()[0];
    assert_eq!((&message["version"], &message["status"]), (&json!("4"), &json!("firing")));
    let alert = &message["alerts"][0];
    assert_eq!(alert["labels"]["instance"], Engines::id(1));
    assert_eq!((&alert["labels"]["endpoint"], &alert["labels"]["severity"]), (&json!("chat"), &json!("warning")));
    assert_eq!(alert["endsAt"], "0001-01-01T00:00:00Z");

    set_faults(&engines.urls()[1], &json!({})).await;
    let ends = || webhook.told().contains(&"IsothermPrefixCachingOff resolved".to_owned());
    ask_until(&router, 12, 1_200, "and told that it is over", ends).await;
    assert_eq!(webhook.told().len(), 2, "{:?}", webhook.told());
}

#[tokio::test]
async fn a_restarted_engine_is_told_for_a_while_and_nothing_else() {
    let (mut engines, webhook) = (Engines::start(3, &["--speed", "100"]), Webhook::start().await);
    let folder = tempfile::tempdir().expect("a folder");
    let router = watchful(&engines, &webhook, folder.path());
    ask_until(&router, 12, 1_200, "its figures are known", || true).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    engines.kill(0);
    engines.restart(0);
    let told = |what: &str| webhook.told().contains(&format!("IsothermEngineRestarted {what}"));
    ask_until(&router, 12, 1_200, "the webhook is told", || told("firing")).await;
    ask_until(&router, 12, 1_200, "and told that it is over", || told("resolved")).await;
    assert_eq!(webhook.told().len(), 2, "{:?}", webhook.told());
}

#[tokio::test]
async fn a_full_cache_is_told_and_nothing_else() {
    let engines = Engines::start(2, &["--speed", "100", "--kv-cache-tokens", "8192"]);
    let (webhook, folder) = (Webhook::start().await, tempfile::tempdir().expect("a folder"));
    let router = watchful(&engines, &webhook, folder.path());
    let fires = || webhook.told().contains(&"IsothermCachePressure firing".to_owned());
    ask_until(&router, 24, 1_500, "the webhook is told", fires).await;
    // That few tokens come from caches is true, too, and may be told beside it.
    let others: Vec<String> = webhook.told().into_iter().filter(|told| !told.contains("CachePressure")).collect();
    assert!(others.iter().all(|told| told == "IsothermLowHitRate firing"), "{others:?}");
    let listed = alerts(&router).await;
    assert!(listed.iter().any(|alert| alert["alert"] == "IsothermCachePressure" && alert["state"] == "firing"));
}

#[tokio::test]
async fn half_an_hour_of_mixed_traffic_raises_no_alarm() {
    let (engines, webhook) = (Engines::start(4, &["--speed", "100"]), Webhook::start().await);
    let folder = tempfile::tempdir().expect("a folder");
    let router = watchful(&engines, &webhook, folder.path());
    let traffic = MixedTraffic::start(router.url(), Duration::from_millis(100));
    tokio::time::sleep(Duration::from_secs(18)).await;
    eventually("enough traffic", WITHIN, async || (traffic.answered() > 300).then_some(())).await;
    traffic.stop().await;
    assert_eq!(alerts(&router).await, Vec::<Value>::new());
    assert_eq!(webhook.told(), Vec::<String>::new());
}

async fn alerts(router: &Running) -> Vec<Value> {
    let listed = admin(router).get("/api/alerts").await.ok().json();
    listed["alerts"].as_array().expect("a list").clone()
}

/// Whoever holds the token.
pub(crate) fn admin(router: &Running) -> Client {
    let output = router.output();
    let path = output.split("token in ").nth(1).and_then(|rest| rest.split(')').next()).expect("the token's file");
    let token = std::fs::read_to_string(path).expect("the token");
    Client::new(router.admin()).with_header("authorization", &format!("Bearer {}", token.trim()))
}
