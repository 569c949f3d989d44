//! SageMaker's container paths: `/ping` and every form of `/invocations`.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use isotherm_emulator::{EmulatorConfig, start};
use serde_json::{Value, json};

use crate::client::{Client, Whole, chat, document, engine, fast, post, with};

#[tokio::test]
async fn openai_bodies_are_told_apart_by_their_fields() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    for (body, object) in [
        (chat("Hello"), "chat.completion"),
        (json!({"prompt": "Hello"}), "text_completion"),
        (json!({"input": "Hello"}), "list"),
    ] {
        assert_eq!(client.post("/invocations", &body).await.json()["object"], object);
    }
    let streamed = client.stream("/invocations", &json!({"prompt": "Hello", "stream": true})).await.rest().await;
    assert_eq!(streamed.last().unwrap().data, "[DONE]");
}

#[tokio::test]
async fn inputs_become_generated_text() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let request = json!({"inputs": "Where is it warm?", "parameters": {"max_new_tokens": 5}});
    let body = client.post("/invocations", &request).await.json();
    assert_eq!(body.as_array().unwrap().len(), 1);
    assert!(!body[0]["generated_text"].as_str().unwrap().is_empty());
    let full = json!({"inputs": "Where?", "parameters": {"max_new_tokens": 5, "return_full_text": true}});
    let body = client.post("/invocations", &full).await.json();
    assert!(body[0]["generated_text"].as_str().unwrap().starts_with("Where?"));
}

#[tokio::test]
async fn a_body_that_fits_nothing_is_refused() {
    let engine = engine();
    let reply = Client::new(&engine).await.post("/invocations", &json!({"question": "?"})).await;
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("inputs"));
}

#[tokio::test]
async fn ping_answers_both_methods() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    assert_eq!(client.get("/ping").await.status, 200);
    assert_eq!(client.post("/ping", &json!({})).await.status, 200);
}

fn within(session: &str, body: &Value) -> Request<Full<Bytes>> {
    let request = Request::post("/invocations").header("x-amzn-sagemaker-session-id", session);
    request.body(Full::new(body.to_string().into())).unwrap()
}

/// The id of the session that an answer says to have begun, and until when it lasts.
fn begun(answer: &Whole) -> (String, String) {
    let value = answer.headers["x-amzn-sagemaker-new-session-id"].to_str().unwrap();
    let (id, expires) = value.split_once("; Expires=").unwrap();
    (id.to_owned(), expires.to_owned())
}

#[tokio::test]
async fn a_session_is_begun_used_and_closed() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let answer = client.request(within("NEW_SESSION", &json!({"requestType": "NEW_SESSION"}))).await;
    let (id, expires) = begun(&answer);
    assert_eq!((answer.status.as_u16(), answer.text()), (200, format!("Session {id} created").as_str()));
    assert_eq!((expires.len(), &expires[19..]), (20, "Z"));
    let answer = client.request(within(&id, &chat("Hello"))).await;
    assert_eq!(answer.json()["object"], "chat.completion");
    assert!(!answer.headers.contains_key("x-amzn-sagemaker-new-session-id"));

    let answer = client.request(within(&id, &json!({"requestType": "CLOSE"}))).await;
    assert_eq!(
        (answer.status.as_u16(), answer.headers["x-amzn-sagemaker-closed-session-id"].to_str().unwrap()),
        (200, id.as_str())
    );
    for body in [chat("Hello"), json!({"requestType": "CLOSE"})] {
        let answer = client.request(within(&id, &body)).await;
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains(&format!("session not found: {id}")), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_first_request_may_begin_its_session_itself() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let answer = client.request(within("NEW_SESSION", &chat("Hello"))).await;
    assert_eq!(answer.json()["object"], "chat.completion");
    let (id, _) = begun(&answer);
    assert_eq!(client.request(within(&id, &chat("And then?"))).await.status, 200);
    assert_ne!(begun(&client.request(within("NEW_SESSION", &chat("Hello"))).await).0, id);
}

#[tokio::test]
async fn a_session_ends_with_its_time() {
    let engine = start(EmulatorConfig { session_lifetime: Duration::ZERO, ..fast() }).unwrap();
    let mut client = Client::new(&engine).await;
    let (id, _) = begun(&client.request(within("NEW_SESSION", &json!({"requestType": "NEW_SESSION"}))).await);
    assert_eq!(client.request(within(&id, &chat("Hello"))).await.status, 400);
}

#[tokio::test]
async fn wishes_that_are_none_are_refused() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let answer = client.post("/invocations", &json!({"requestType": "CLOSE"})).await;
    assert_eq!((answer.status.as_u16(), answer.text().contains("session-id")), (400, true));
    let answer = client.post("/invocations", &json!({"requestType": "OPEN"})).await;
    assert_eq!((answer.status.as_u16(), answer.text().contains("NEW_SESSION or CLOSE")), (400, true));
}

#[tokio::test]
async fn an_adapter_named_in_the_head_has_its_own_cache_and_shows_in_the_answer() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let load = json!({"lora_name": "sql", "lora_path": "/adapters/sql"});
    assert_eq!(client.post("/v1/load_lora_adapter", &load).await.status, 200);
    let question = with(chat(&document(400)), json!({"model": "whatever the body says"}));
    let by_adapter = |name: &'static str| {
        let request = post("/invocations", &question);
        let (mut head, body) = request.into_parts();
        head.headers.insert("x-amzn-sagemaker-adapter-identifier", name.parse().unwrap());
        Request::from_parts(head, body)
    };
    let cached =
        |answer: &Whole| answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0);
    let base = with(chat(&document(400)), json!({"model": "m"}));
    client.post("/invocations", &base).await;
    assert!(cached(&client.post("/invocations", &base).await) > 0);

    let first = client.request(by_adapter("sql")).await;
    assert_eq!((first.status.as_u16(), first.json()["model"].as_str(), cached(&first)), (200, Some("sql"), 0));
    assert!(cached(&client.request(by_adapter("sql")).await) > 0);
    assert_eq!(client.request(by_adapter("nobody")).await.status, 404);
    let observed = client.get("/emulator/requests").await.json();
    let headers = observed["requests"].as_array().unwrap().last().unwrap()["headers"].clone();
    assert!(
        headers.as_array().unwrap().contains(&json!(["x-amzn-sagemaker-adapter-identifier", "nobody"])),
        "{headers}"
    );
    // Elsewhere the body alone decides.
    let elsewhere = post("/v1/chat/completions", &base);
    let (mut head, body) = elsewhere.into_parts();
    head.headers.insert("x-amzn-sagemaker-adapter-identifier", "nobody".parse().unwrap());
    assert_eq!(client.request(Request::from_parts(head, body)).await.json()["model"], "m");
}
