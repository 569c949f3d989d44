//! Prompts and credentials pass through; nothing that the router says or keeps tells them.

use isotherm_tests::{Client, Engines, Running, run, set_faults};
use serde_json::{Value, json};

/// Words that stand nowhere else: in prompts, tools, images, and in what must not be there.
const PROMPT: &str = "canaryprompt7261";
const TOOL: &str = "canarytool7262";
const IMAGE: &str = "Y2FuYXJ5aW1hZ2U3MjYz";
const WRONG_KEY: &str = "canarykey7264";

fn body(stream: bool) -> Value {
    json!({
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": format!("A secret: {PROMPT}")},
            {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{IMAGE}")}},
        ]}],
        "tools": [{"type": "function", "function": {"name": TOOL, "parameters": {"type": "object"}}}],
        "stream": stream, "max_tokens": 4,
    })
}

#[tokio::test]
async fn what_clients_send_appears_in_no_log_metric_error_or_listing() {
    let made = run(&["config", "key", "alice", "--json"]);
    let made: Value = serde_json::from_str(&made.stdout).expect("JSON");
    let (key, line) = (made["key"].as_str().expect("a key"), made["line"].as_str().expect("a line"));
    let folder = tempfile::tempdir().expect("a folder");
    let (keys, log) = (folder.path().join("keys"), folder.path().join("access.log"));
    std::fs::write(&keys, format!("{line}\n")).expect("written");
    let engines = Engines::start(1, &["--speed", "100"]);
    let file = folder.path().join("isotherm.yaml");
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nexpose_decisions: true\n\
         auth: {{ keys_file: {} }}\naccess_log: {}\n\
         endpoints:\n  - name: chat\n    variants:\n      - name: AllTraffic\n        instances: [{{ url: \"{}\" }}]\n",
        keys.display(),
        log.display(),
        engines.urls()[0]
    );
    std::fs::write(&file, text).expect("written");
    let router = Running::start_with(&["serve", "--config", &file.display().to_string()], |command| {
        command.env("ISOTHERM_LOG", "trace");
    });
    let client = Client::new(router.url()).with_header("authorization", &format!("Bearer {key}"));
    let mut told = String::new();
    // Answered, failed, cut off, malformed, refused: each has a way of its own through the router.
    for stream in [false, true] {
        let answer = client.post("/v1/chat/completions", &body(stream)).await;
        told += &format!("{:?}", answer.headers);
    }
    for fault in [json!({"fault": "status", "code": 503}), json!({"fault": "die_after_tokens", "tokens": 1})] {
        set_faults(&engines.urls()[0], &json!({"requests": fault, "next": 1})).await;
        if let Ok(answer) = client.try_post("/v1/chat/completions", &body(true)).await {
            told += &format!("{:?}", answer.headers);
        }
    }
    let malformed = format!(r#"{{"messages": [{{"role": "user", "content": "{PROMPT}"}} oops"#);
    let refused = client.post_bytes("/v1/chat/completions", malformed).await;
    assert_eq!(refused.status, 400);
    told += refused.text();
    let stranger = Client::new(router.url()).with_header("authorization", &format!("Bearer {WRONG_KEY}"));
    let refused = stranger.post("/v1/chat/completions", &body(false)).await;
    assert_eq!(refused.status, 401);
    told += refused.text();
    told += client.get(&format!("/v1/models/{TOOL}?x={PROMPT}")).await.text();
    told += Client::new(router.admin()).get("/metrics").await.ok().text();
    told += &run(&["instances", "list", "--json", "--admin", router.admin()]).stdout;
    told += &std::fs::read_to_string(&log).expect("the access log");
    told += &router.output();
    assert!(told.contains("isotherm_requests_total") && told.contains("alice"), "all of it was read");
    // The model that a client asks for by its path is told back to it, and to nobody else.
    for canary in [PROMPT, IMAGE, WRONG_KEY, key] {
        let at = told.find(canary).map(|at| told[at.saturating_sub(200)..].chars().take(300).collect::<String>());
        assert_eq!(at, None, "{canary} is told");
    }
}
