//! Who may call: a listener beyond loopback starts only with keys, or with `auth: none` written out.

use isotherm_tests::{Client, Engines, Running, chat, run};

#[test]
fn a_public_listener_without_keys_is_refused_in_words() {
    let refused = run(&["serve", "--instance", "http://127.0.0.1:1", "--host", "0.0.0.0", "--port", "0"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--auth none") || refused.stderr.contains("auth"), "{}", refused.stderr);
}

#[tokio::test]
async fn keys_made_by_the_command_open_the_door_and_no_others() {
    let made = run(&["config", "key", "alice", "--json"]);
    let made: serde_json::Value = serde_json::from_str(&made.stdout).expect("JSON");
    let (key, line) = (made["key"].as_str().expect("a key"), made["line"].as_str().expect("a line"));
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys");
    std::fs::write(&keys, format!("{line}\n")).expect("written");

    let engines = Engines::start(1, &["--speed", "100"]);
    let mut arguments: Vec<String> = ["serve", "--port", "0", "--admin-port", "0"].map(str::to_owned).into();
    arguments.extend(engines.instance_flags());
    arguments.extend(["--keys-file".to_owned(), keys.display().to_string()]);
    let router = Running::start(&arguments);
    let anonymous = Client::new(router.url());
    let body = chat("Hello", "there?");
    // SageMaker's clients know missing credentials as 403.
    for (path, status) in [("/v1/chat/completions", 401), ("/v1/messages", 401), ("/invocations", 403)] {
        assert_eq!(anonymous.post(path, &body).await.status, status, "{path}");
    }
    let wrong = anonymous.clone().with_header("authorization", "Bearer wrong");
    let refused = wrong.post("/v1/chat/completions", &body).await;
    assert_eq!(refused.status, 401);
    assert_eq!(refused.json()["error"]["type"], "authentication_error");
    let right = anonymous.clone().with_header("authorization", &format!("Bearer {key}"));
    let _ = right.post("/v1/chat/completions", &body).await.ok();
    assert!(!router.output().contains(key), "a key was printed");
}
