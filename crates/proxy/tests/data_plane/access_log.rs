//! One line for each request, however it ends, and never a word of a prompt or a key.

use std::sync::Arc;
use std::time::Duration;

use isotherm_config::{Config, Environment, Overrides};
use isotherm_fleet::{Clock, Fleet};
use isotherm_proxy::{DataPlane, Settings};
use isotherm_telemetry::{AccessLog, Metrics};

use crate::client::{Client, chat, get};
use crate::origin::{END, EVENTS, Origin, chunk};

#[tokio::test]
async fn every_request_leaves_a_line_without_its_text() {
    let usage =
        r#"{"choices":[{"delta":{"content":"canary-answer"}}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#;
    let stream = EVENTS.to_owned() + &chunk(&format!("data: {usage}\n\ndata: [DONE]\n\n")) + END;
    let origin = Origin::answering(&stream).await;
    let directory = tempfile::tempdir().unwrap();
    let log_path = directory.path().join("access.log");
    let overrides = Overrides { instances: vec![format!("a={}", origin.url())], ..Overrides::default() };
    let mut config = Config::load(None, &Environment::default(), &overrides).unwrap();
    config.listen.set_port(0);
    let metrics = Arc::new(Metrics::new("test"));
    let access_log = AccessLog::to_file(&log_path, &metrics).unwrap();
    let fleet = Fleet::new(&config, Arc::clone(&metrics), Clock::start());
    let settings = Settings { threads: 1, ..Settings::of(&config) };
    let plane = DataPlane::start(settings, fleet, metrics, access_log.clone(), None).unwrap();

    let answered =
        chat("canary-prompt").replacen("host: router", "host: router\r\nauthorization: Bearer canary-key", 1);
    let malformed = chat("canary-prompt").replacen("]}", "]x", 1);
    for (request, status) in [(answered, 200), (malformed, 400), (get("/nowhere?canary-query"), 404)] {
        let mut client = Client::connect(plane.address()).await;
        client.send(request).await;
        assert_eq!(client.answer().await.status, status);
    }
    plane.drain(Duration::from_secs(5)).await;
    assert!(access_log.flush(Duration::from_secs(5)));

    let log = std::fs::read_to_string(&log_path).unwrap();
    assert!(!log.contains("canary"), "{log}");
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = lines.iter().map(|line| (line["status"].as_u64(), line["outcome"].as_str())).collect();
    assert_eq!(told, [(Some(200), Some("ok")), (Some(400), Some("refused")), (Some(404), Some("refused"))]);
    let first = &lines[0];
    assert_eq!((&first["model"], &first["instance"], &first["reason"]), (&"m".into(), &"a".into(), &"single".into()));
    assert_eq!((&first["prompt_tokens"], &first["output_tokens"]), (&9.into(), &2.into()));
    assert!(first["ttft_ms"].is_f64() && first["key"].is_string() && first["client"].is_string(), "{first}");
    assert!(first["bytes_in"].as_u64() > Some(50) && first["bytes_out"].as_u64() > Some(50), "{first}");
}
