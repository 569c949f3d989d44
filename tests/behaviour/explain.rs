//! `isotherm explain`: where a request goes and why, without sending it.

use std::collections::BTreeSet;
use std::path::Path;

use isotherm_tests::{Client, Engines, Metrics, chat, document, run};
use serde_json::{Value, json};

use crate::serve;

const CONFIGURATION: &str = "\
endpoints:
  - name: chat
    variants:
      - name: AllTraffic
        instances:
          - { id: a, url: \"http://127.0.0.1:1\" }
          - { id: b, url: \"http://127.0.0.1:2\" }
          - { id: c, url: \"http://127.0.0.1:3\" }
";

#[test]
fn a_text_shorter_than_the_prefix_has_a_home_for_each_question_and_is_told_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut homes = BTreeSet::new();
    for number in 0..12 {
        let body = inputs("A short policy.", number);
        let explained = explain(folder.path(), &body, &["--json"]);
        let explained: Value = serde_json::from_str(&explained).expect("JSON");
        assert_eq!(explained["path"], "/invocations");
        assert_eq!(explained["prefix"]["covers_everything"], true);
        homes.insert(explained["order"][0]["instance"].as_str().expect("a home").to_owned());
    }
    assert_eq!(homes.len(), 3, "twelve questions, {homes:?}");

    let words = explain(folder.path(), &inputs("A short policy.", 1), &[]);
    for word in ["/invocations", "assumed", "not longer than the prefix", "prefix_length", "home", "spill", "order"] {
        assert!(words.contains(word), "no {word:?} in\n{words}");
    }
}

#[test]
fn a_text_longer_than_the_prefix_has_one_home_for_all_questions() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = document(1, 1_500);
    let mut keys = BTreeSet::new();
    for number in 0..3 {
        let explained = explain(folder.path(), &inputs(&policy, number), &["--json"]);
        let explained: Value = serde_json::from_str(&explained).expect("JSON");
        assert_eq!(explained["prefix"]["covers_everything"], false);
        keys.insert(explained["key"].as_str().expect("a key").to_owned());
    }
    assert_eq!(keys.len(), 1);
    assert!(!explain(folder.path(), &inputs(&policy, 1), &[]).contains("not longer than the prefix"));
}

#[tokio::test]
async fn a_running_router_explains_what_it_then_does_and_counts_nothing() {
    let engines = Engines::start(3, &["--speed", "100"]);
    let router = serve(&engines, &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let body = chat(&document(1, 1_200), "Where will this go?");
    let file = write(folder.path(), &body);
    let explained = run(&["explain", &file, "--json", "--admin", router.admin()]);
    assert_eq!(explained.code, Some(0), "{}", explained.stderr);
    let explained: Value = serde_json::from_str(&explained.stdout).expect("JSON");
    assert_eq!(explained["path"], "/v1/chat/completions");
    assert_eq!(Metrics::read(router.admin()).await.sum("isotherm_decisions_total", &[]), 0.0);

    let answer = Client::new(router.url()).post("/v1/chat/completions", &body).await.ok();
    assert_eq!(explained["key"], answer.header("x-isotherm-key"));
    assert_eq!(explained["order"][0]["instance"], answer.header("x-isotherm-home"));
    assert_eq!(explained["order"].as_array().map(Vec::len), Some(3));
}

/// The request in the form that SageMaker's text-generation containers take.
fn inputs(policy: &str, question: usize) -> Value {
    json!({"inputs": format!("{policy}\n\nQuestion {question}?"), "parameters": {"max_new_tokens": 32}})
}

/// What `explain` says by the configuration above.
fn explain(folder: &Path, body: &Value, options: &[&str]) -> String {
    let configuration = folder.join("isotherm.yaml").display().to_string();
    std::fs::write(&configuration, CONFIGURATION).expect("written");
    let request = write(folder, body);
    let ended = run(&[&["explain", "--config", &configuration, &request], options].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended.stdout
}

fn write(folder: &Path, body: &Value) -> String {
    let file = folder.join("request.json").display().to_string();
    std::fs::write(&file, body.to_string()).expect("written");
    file
}
