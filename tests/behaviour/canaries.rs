//! Prompts and credentials pass through; nothing that the router says or keeps tells them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use isotherm_tests::{Client, Engines, Running, eventually, run, set_faults};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::alarms::admin;

/// Words that stand nowhere else: in prompts, tools, images, and in what must not be there.
const PROMPT: &str = "canaryprompt7261";
const TOOL: &str = "canarytool7262";
const ARGUMENT: &str = "canaryargument7265";
const IMAGE: &str = "Y2FuYXJ5aW1hZ2U3MjYz";
const WRONG_KEY: &str = "canarykey7264";

fn body(stream: bool) -> Value {
    json!({
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": format!("A secret: {PROMPT}")},
            {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{IMAGE}")}},
        ]}, {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": TOOL, "arguments": format!("{{\"a\": \"{ARGUMENT}\"}}")}},
        ]}, {"role": "tool", "tool_call_id": "call_1", "content": ARGUMENT}],
        "tools": [{"type": "function", "function": {"name": TOOL, "parameters": {"type": "object"}}}],
        "stream": stream, "max_tokens": 4,
    })
}

/// A receiver of OpenTelemetry's: its address, and everything that was sent to it.
async fn receiver() -> (String, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let sent = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&sent);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut post = Vec::new();
            // Half a second of silence is the end of what comes at once.
            while let Ok(Ok(1..)) = tokio::time::timeout(Duration::from_millis(500), stream.read_buf(&mut post)).await {
            }
            kept.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(&post));
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").await;
        }
    });
    (url, sent)
}

#[tokio::test]
async fn what_clients_send_appears_in_no_log_metric_trace_error_page_or_listing() {
    let made = run(&["config", "key", "alice", "--json"]);
    let made: Value = serde_json::from_str(&made.stdout).expect("JSON");
    let (key, line) = (made["key"].as_str().expect("a key"), made["line"].as_str().expect("a line"));
    let folder = tempfile::tempdir().expect("a folder");
    let (keys, log) = (folder.path().join("keys"), folder.path().join("access.log"));
    std::fs::write(&keys, format!("{line}\n")).expect("written");
    let (engines, (receiver, sent)) = (Engines::start(1, &["--speed", "100"]), receiver().await);
    let sent = || sent.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let file = folder.path().join("isotherm.yaml");
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nexpose_decisions: true\n\
         auth: {{ keys_file: {} }}\naccess_log: {}\ninject_cache_salt: true\n\
         diagnostics: {{ tell_clients: true }}\notlp: {{ endpoint: \"{}\", metrics_interval: 1s }}\n\
         endpoints:\n  - name: chat\n    variants:\n      - name: AllTraffic\n        instances: [{{ url: \"{}\" }}]\n",
        keys.display(),
        log.display(),
        receiver,
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
    // What a client asks for by its path is told back to it, and to nobody else.
    told += client.get(&format!("/v1/models/m?x={PROMPT}")).await.text();
    told += Client::new(router.admin()).get("/metrics").await.ok().text();
    let of_admin = admin(&router);
    for path in ["overview", "alerts", "doctor", "requests", "requests.jsonl", "analysis", "instances"] {
        told += of_admin.get(&format!("/api/{path}")).await.ok().text();
    }
    told += of_admin.post("/api/explain", &json!({ "body": body(false).to_string() })).await.text();
    for path in ["/", "/app.js"] {
        told += Client::new(router.admin()).get(path).await.ok().text();
    }
    let file = file.display().to_string();
    let commands: [&[&str]; 4] = [
        &["instances", "list", "--json", "--admin", router.admin()],
        &["config", "check", &file, "--json"],
        &["doctor", "--admin", router.admin()],
        &["analyze", &log.display().to_string()],
    ];
    for command in commands {
        let ended = run(command);
        told += &(ended.stdout + &ended.stderr);
    }
    eventually("traces and metrics are sent", Duration::from_secs(20), async || {
        (sent().contains("resourceSpans") && sent().contains("resourceMetrics")).then_some(())
    })
    .await;
    told += &sent();
    told += &std::fs::read_to_string(&log).expect("the access log");
    told += &router.output();
    for word in ["isotherm_requests_total", "alice", "resourceSpans", "\"valid\"", "PREFIX_AWARE"] {
        assert!(told.contains(word), "{word}: not all of it was read");
    }
    let token = router.output();
    let token = token.split("token in ").nth(1).and_then(|rest| rest.split(')').next()).expect("the token's file");
    let token = std::fs::read_to_string(token).expect("the token");
    for canary in [PROMPT, TOOL, ARGUMENT, IMAGE, WRONG_KEY, key, token.trim()] {
        let at = told.find(canary).map(|at| told[at.saturating_sub(200)..].chars().take(300).collect::<String>());
        assert_eq!(at, None, "{canary} is told");
    }
}
