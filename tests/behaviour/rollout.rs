//! A partial rollout: a share of the prefixes goes by the strategy, the rest at random, and both are told apart.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_tests::{Client, Engines, Metrics, Running, chat, document};

#[tokio::test]
async fn half_of_the_prefixes_have_a_home_and_the_others_do_not() {
    let engines = Engines::start(3, &["--speed", "200"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("isotherm.yaml");
    let instances: String = engines.urls().iter().map(|url| format!("          - url: \"{url}\"\n")).collect();
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nexpose_decisions: true\nendpoints:\n  - name: chat\n    \
         variants:\n      - name: AllTraffic\n        routing: {{ rollout: 50 }}\n        instances:\n{instances}"
    );
    std::fs::write(&file, text).expect("written");
    let router = Running::start(&["serve", "--config", &file.display().to_string()]);
    let client = Client::new(router.url());

    let mut answered_by: BTreeMap<(u64, String), BTreeSet<String>> = BTreeMap::new();
    for number in 0..20 {
        let document = document(number, 1_000);
        for question in 0..6 {
            let body = chat(&document, &format!("Question {question}?"));
            let answer = client.post("/v1/chat/completions", &body).await.ok();
            let reason = answer.header("x-isotherm-reason").to_owned();
            answered_by.entry((number, reason)).or_default().insert(answer.instance());
        }
    }
    assert_eq!(answered_by.len(), 20, "a prefix stays in its arm: {answered_by:?}");
    let by_strategy: Vec<_> = answered_by.iter().filter(|((_, reason), _)| reason == "home").collect();
    assert!((4..=16).contains(&by_strategy.len()), "{} of 20 prefixes go by the strategy", by_strategy.len());
    assert!(by_strategy.iter().all(|(_, instances)| instances.len() == 1), "{by_strategy:?}");
    let at_random = answered_by.iter().filter(|((_, reason), _)| reason == "random");
    assert!(at_random.clone().any(|(_, instances)| instances.len() > 1));
    let metrics = Metrics::read(router.admin()).await;
    let requests = |arm| metrics.sum("isotherm_decisions_total", &[("arm", arm)]);
    assert_eq!(requests("strategy"), 6.0 * by_strategy.len() as f64);
    assert_eq!(requests("random"), 6.0 * at_random.count() as f64);
}
