//! Stored responses live on the instance that made them.

use http::Method;
use isotherm_emulator::{EmulatorConfig, start};
use serde_json::json;

use crate::client::{Client, engine, eventually, fast, with};

#[tokio::test]
async fn a_response_builds_on_the_one_before() {
    let (engine, elsewhere) = (engine(), engine());
    let mut client = Client::new(&engine).await;
    let first = client.post("/v1/responses", &json!({"input": "Tell me much.", "max_output_tokens": 500})).await.json();
    assert_eq!(first["status"], "completed");
    let follow_up = json!({"input": "And then?", "previous_response_id": first["id"], "max_output_tokens": 1});
    let second = client.post("/v1/responses", &follow_up).await.json();
    let before = first["usage"]["input_tokens"].as_u64().unwrap() + first["usage"]["output_tokens"].as_u64().unwrap();
    assert!(second["usage"]["input_tokens"].as_u64().unwrap() > before);
    let cached = second["usage"]["input_tokens_details"]["cached_tokens"].as_u64().unwrap();
    assert!(cached >= before - 32, "{cached} of {before}");
    assert_eq!(second["status"], "incomplete");
    let mut other = Client::new(&elsewhere).await;
    assert_eq!(other.post("/v1/responses", &follow_up).await.status, 404);
}

#[tokio::test]
async fn a_response_is_found_until_it_is_deleted() {
    let (engine, elsewhere) = (engine(), engine());
    let mut client = Client::new(&engine).await;
    let stream = with(json!({"input": "Hello", "max_output_tokens": 4}), json!({"stream": true}));
    let events = client.stream("/v1/responses", &stream).await.rest().await;
    let made = events.last().unwrap().json()["response"].clone();
    let path = format!("/v1/responses/{}", made["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.json(), made);
    assert_eq!(Client::new(&elsewhere).await.get(&path).await.status, 404);
    assert_eq!(client.send(Method::DELETE, &path, Default::default()).await.json()["deleted"], true);
    assert_eq!(client.get(&path).await.status, 404);
    assert_eq!(client.send(Method::DELETE, &path, Default::default()).await.status, 404);
}

#[tokio::test]
async fn nothing_is_kept_where_store_is_false_or_the_budget_is_used_up() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let unkept = client.post("/v1/responses", &json!({"input": "Hello", "store": false})).await.json();
    assert_eq!(client.get(&format!("/v1/responses/{}", unkept["id"].as_str().unwrap())).await.status, 404);
    let small = start(EmulatorConfig { stored_response_bytes: 2_000, ..fast() }).unwrap();
    let mut client = Client::new(&small).await;
    let mut paths = Vec::new();
    for _ in 0..3 {
        let made = client.post("/v1/responses", &json!({"input": "Hello", "max_output_tokens": 1})).await.json();
        paths.push(format!("/v1/responses/{}", made["id"].as_str().unwrap()));
    }
    assert_eq!(client.get(&paths[0]).await.status, 404);
    assert_eq!(client.get(&paths[2]).await.status, 200);
}

#[tokio::test]
async fn a_response_in_the_background_completes_or_is_cancelled() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let request = json!({"input": "Hello", "background": true, "max_output_tokens": 4});
    let queued = client.post("/v1/responses", &request).await.json();
    assert_eq!(queued["status"], "queued");
    let path = format!("/v1/responses/{}", queued["id"].as_str().unwrap());
    eventually("the end of the response", || engine.statistics().finished == 1).await;
    while client.get(&path).await.json()["status"] == "queued" {}
    assert_eq!(client.get(&path).await.json()["usage"]["output_tokens"], 4);
    assert_eq!(client.send(Method::POST, &format!("{path}/cancel"), Default::default()).await.status, 400);

    let endless = with(request, json!({"max_output_tokens": 100_000, "ignore_eos": true}));
    let made = client.post("/v1/responses", &endless).await.json();
    let path = format!("/v1/responses/{}", made["id"].as_str().unwrap());
    let cancelled = client.send(Method::POST, &format!("{path}/cancel"), Default::default()).await.json();
    assert_eq!(cancelled["status"], "cancelled");
    eventually("the abort", || engine.statistics().aborted == 1).await;
    assert_eq!(client.get(&path).await.json()["status"], "cancelled");
}
