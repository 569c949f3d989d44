//! What `GET /emulator/requests` tells of the requests that came in.

use http::Method;
use isotherm_emulator::EmulatorConfig;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use crate::client::{Client, chat, engine, fast, post, with};

#[tokio::test]
async fn a_request_is_seen_with_headers_body_hash_and_tokens() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let mut request = post("/v1/chat/completions?a=1", &chat("Hello"));
    request.headers_mut().insert("authorization", "Bearer secret".parse().unwrap());
    client.request(request).await;
    let seen = client.get("/emulator/requests").await;
    assert!(!seen.text().contains("secret"));
    let entry = &seen.json()["requests"][0];
    assert_eq!(entry["path"], "/v1/chat/completions?a=1");
    assert_eq!(entry["body_xxh3_128"], format!("{:032x}", xxh3_128(chat("Hello").to_string().as_bytes())));
    assert_eq!((entry["in_flight"].clone(), entry["aborted"].clone()), (json!(false), json!(false)));
    assert_eq!((entry["status"].clone(), entry["output_tokens"].clone()), (json!(200), json!(8)));
    client.send(Method::DELETE, "/emulator/requests", Default::default()).await;
    assert_eq!(client.get("/emulator/requests").await.json()["requests"], json!([]));
}

#[tokio::test]
async fn a_client_that_left_is_told_from_one_that_was_served() {
    let engine = engine();
    let mut control = Client::new(&engine).await;
    let endless = json!({"max_tokens": 100_000, "ignore_eos": true, "stream": true});
    let mut leaving = Client::new(&engine).await;
    let mut stream = leaving.stream("/v1/chat/completions", &with(chat("Hello"), endless)).await;
    stream.next().await.unwrap();
    assert_eq!(control.get("/emulator/requests").await.json()["in_flight"], 1);
    leaving.leave();
    drop(stream);
    loop {
        let seen = control.get("/emulator/requests").await.json();
        if seen["in_flight"] == 0 {
            assert_eq!(seen["requests"][0]["aborted"], true);
            assert!(seen["requests"][0]["output_tokens"].as_u64().unwrap() > 0);
            return;
        }
    }
}

#[tokio::test]
async fn only_the_last_requests_are_kept() {
    let engine = isotherm_emulator::start(EmulatorConfig { observed_requests: 2, ..fast() }).unwrap();
    let mut client = Client::new(&engine).await;
    for text in ["1", "2", "3"] {
        client.post("/tokenize", &json!({"prompt": text})).await;
    }
    let seen: Value = client.get("/emulator/requests").await.json();
    assert_eq!(seen["seen"], 3);
    assert_eq!(seen["requests"].as_array().unwrap().len(), 2);
}
