//! `isotherm doctor` finds what is wrong with a router and its engines, and exits as linters do.

use std::time::{Duration, SystemTime};

use isotherm_tests::{
    Certificates, Client, Ended, Engines, Running, TlsFront, chat, document, eventually, run, set_faults,
};
use serde_json::{Value, json};

use crate::{serve, up};

fn doctor(router: &Running, options: &[&str]) -> Ended {
    let mut arguments = vec!["doctor", "--admin", router.admin()];
    arguments.extend_from_slice(options);
    run(&arguments)
}

/// What is not as it should be: check and verdict.
fn wrong(ended: &Ended) -> Vec<(String, String)> {
    let told: Value =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}{}", ended.stdout, ended.stderr));
    let findings = told["findings"].as_array().expect("findings").iter();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    findings
        // How many files may be open is the machine's.
        .filter(|finding| finding["verdict"] != "ok" && finding["check"] != "file descriptors")
        .inspect(|finding| assert_ne!(finding["fix"], "", "{finding}"))
        .map(|finding| (word(&finding["check"]), word(&finding["verdict"])))
        .collect()
}

/// Until the router has read its engines' figures.
async fn known(router: &Running, checks: &str) {
    eventually("the router knows its engines", Duration::from_secs(20), async || {
        doctor(router, &[]).stdout.contains(checks).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_fleet_in_good_health_has_nothing_wrong() {
    let up = up(&["--engines", "3", "--speed", "100"]);
    known(&up, "engine metrics    ok").await;
    let ended = doctor(&up, &[]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    for part in ["check", "verdict", "instances         ok", "replicas          ok", "prefix caching    ok"] {
        assert!(ended.stdout.contains(part), "{part}:\n{}", ended.stdout);
    }
    assert_eq!(wrong(&doctor(&up, &["--json"])), []);
}

#[tokio::test]
async fn faults_of_engines_are_found_each_with_its_fix() {
    let mut engines = Engines::start(3, &["--speed", "100"]);
    set_faults(&engines.urls()[0], &json!({ "no_prefix_caching": true })).await;
    set_faults(&engines.urls()[1], &json!({ "no_cached_tokens": true })).await;
    let router = serve(&engines, &["--strategy", "random"]);
    let client = Client::new(router.url());
    for number in 0..60 {
        let _ =
            client.post("/v1/chat/completions", &chat(&document(1, 300), &format!("Question {number}?"))).await.ok();
    }
    engines.kill(2);
    let expected = [("instances", "problem"), ("prefix caching", "problem"), ("cached tokens", "warning")];
    let expected = expected.map(|(check, verdict)| (check.to_owned(), verdict.to_owned()));
    eventually("all of it is found", Duration::from_secs(30), async || {
        let ended = doctor(&router, &["--json"]);
        assert!(ended.code == Some(0) || ended.code == Some(1), "{}", ended.stderr);
        (ended.code == Some(1) && wrong(&ended) == expected).then_some(())
    })
    .await;
    let text = doctor(&router, &[]).stdout;
    assert!(
        text.contains("PROBLEM") && text.contains("fix: Start vLLM with --enable-prompt-tokens-details."),
        "{text}"
    );
}

#[tokio::test]
async fn a_configuration_is_checked_without_a_router() {
    let (llama, qwen) = (Engines::start(1, &["--model", "llama"]), Engines::start(1, &["--model", "qwen"]));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("isotherm.yaml");
    let text = format!(
        "listen: 0.0.0.0:8080\nauth: none\nendpoints: [{{ name: chat, variants: [{{ name: main, instances: [\
         {{ url: '{}' }}, {{ url: '{}' }}] }}] }}]\n",
        llama.urls()[0],
        qwen.urls()[0]
    );
    std::fs::write(&file, text).expect("the configuration");
    let ended = run(&["doctor", "--config", &file.to_string_lossy(), "--json"]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let expected = [("replicas", "problem"), ("security", "warning"), ("security", "warning")];
    assert_eq!(wrong(&ended), expected.map(|(check, verdict)| (check.to_owned(), verdict.to_owned())));
}

// The command is waited for on this thread, and TLS ends on others meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instances_certificate_that_ends_is_told_of_with_what_to_do() {
    const DAY: Duration = Duration::from_secs(86_400);
    let engines = Engines::start(3, &["--speed", "100"]);
    let folder = tempfile::tempdir().expect("a folder");
    let certificates = Certificates::in_folder(folder.path());
    let now = SystemTime::now();
    let ends = [now + 60 * DAY, now + 3 * DAY + DAY / 2, now - DAY / 2];
    let mut fronts = Vec::new();
    for (url, until) in engines.urls().iter().zip(ends) {
        certificates.issue_until("engine", &["127.0.0.1"], until);
        fronts.push(TlsFront::before(url, certificates.server("engine", false)).await);
    }
    let file = folder.path().join("isotherm.yaml");
    let listed: String = fronts
        .iter()
        .enumerate()
        .map(|(number, front)| format!("{{ id: e{number}, url: 'https://127.0.0.1:{}' }}, ", front.port()))
        .collect();
    let text = format!(
        "instances_tls: {{ ca: ca.pem }}\nendpoints: [{{ name: chat, variants: [{{ name: main, instances: [{listed}] }}] }}]"
    );
    std::fs::write(&file, text).expect("the configuration");
    let ended = run(&["doctor", "--config", &file.to_string_lossy(), "--json"]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let told: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let of_tls = told["findings"].as_array().expect("findings").iter().filter(|finding| finding["check"] == "TLS");
    let of_tls: Vec<[&str; 3]> = of_tls
        .inspect(|finding| {
            assert!(finding["fix"].as_str().is_some_and(|fix| fix.starts_with("Put a new one")), "{finding}")
        })
        .map(|finding| ["subject", "verdict", "finding"].map(|name| finding[name].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(
        of_tls,
        [
            ["e1", "warning", "its certificate expires in 3 days"],
            ["e2", "problem", "its certificate has expired 0 days ago"]
        ]
    );
}

#[test]
fn what_cannot_be_checked_is_another_exit_code() {
    let ended = run(&["doctor", "--admin", "http://127.0.0.1:1"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert_eq!(run(&["doctor", "--config", "/nowhere.yaml"]).code, Some(2));
}

#[tokio::test]
async fn routers_that_do_not_agree_are_found() {
    let engines = Engines::start(2, &["--speed", "100"]);
    let (one, other) = (serve(&engines, &[]), serve(&engines, &["--prefix-length", "1024"]));
    known(&one, "engine metrics    ok").await;
    let ended = doctor(&one, &["--beside", other.admin(), "--json"]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(wrong(&ended), [("routers".to_owned(), "problem".to_owned())]);
    let ended = doctor(&one, &["--beside", one.admin(), "--json"]);
    assert_eq!((ended.code, wrong(&ended)), (Some(0), Vec::new()));
}
