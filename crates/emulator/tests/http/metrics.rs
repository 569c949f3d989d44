//! `/metrics` as vLLM's scrapers read it.

use serde_json::json;

use crate::client::{Client, chat, document, engine, with};

fn value(page: &str, series: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(series)).unwrap_or_else(|| panic!("{series} is missing"));
    line.trim().parse().unwrap()
}

#[tokio::test]
async fn the_figures_of_requests_appear_under_vllms_names() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    for _ in 0..2 {
        client.post("/v1/chat/completions", &chat(&document(100))).await;
    }
    let stopping = with(chat("Hello"), json!({"max_tokens": 1000}));
    client.post("/v1/chat/completions", &stopping).await;
    let reply = client.get("/metrics").await;
    assert!(reply.headers["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
    let page = reply.text();
    let labels = r#"{engine="0",model_name="m"}"#;
    let queries = value(page, &format!("vllm:prefix_cache_queries_total{labels}"));
    let hits = value(page, &format!("vllm:prefix_cache_hits_total{labels}"));
    assert_eq!(queries, value(page, &format!("vllm:prompt_tokens_total{labels}")));
    assert!(hits > 0.0 && hits < queries);
    assert!(value(page, &format!("vllm:generation_tokens_total{labels}")) > 16.0);
    for idle in ["num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "num_preemptions_total"] {
        assert_eq!(value(page, &format!("vllm:{idle}{labels}")), 0.0);
    }
    let success = |reason| {
        value(page, &format!(r#"vllm:request_success_total{{engine="0",finished_reason="{reason}",model_name="m"}}"#))
    };
    assert_eq!((success("length"), success("stop"), success("abort")), (2.0, 1.0, 0.0));
    assert_eq!(value(page, &format!("vllm:time_to_first_token_seconds_count{labels}")), 3.0);
    let below = r#"vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"}"#;
    assert_eq!(value(page, below), 3.0);
    assert!(page.contains(r#"vllm:cache_config_info{block_size="16","#));
    assert!(value(page, "process_start_time_seconds") > 1.7e9);
    assert!(value(page, &format!("emulator_step_lag_max_seconds{labels}")) > 0.0);
}

#[tokio::test]
async fn every_series_is_described_once_before_its_samples() {
    let engine = engine();
    let page = Client::new(&engine).await.get("/metrics").await.text().to_owned();
    let mut described: Vec<String> = Vec::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.split(' ').next().unwrap().to_owned();
            assert!(!described.contains(&name), "{name} is described twice");
            described.push(name);
        } else if !line.starts_with('#') {
            assert!(line.starts_with(described.last().unwrap().as_str()), "{line}");
        }
    }
    assert!(described.len() > 15);
}
