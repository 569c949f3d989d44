//! `/endpoints/{name}/openai/v1/…`: bytes untouched, errors in OpenAI's form with SageMaker's codes.

use serde_json::{Value, json};

use crate::client::{get, post, until};
use crate::managed::{base, copy, endpoint, variant};
use crate::origin::{self, END, EVENTS, Origin, Step, chunk};
use crate::router::Router;

const PATH: &str = "/endpoints/chat/openai/v1/chat/completions";

fn body(text: &str) -> String {
    format!(r#"{{"model":"","messages":[{{"role":"user","content":"{text}"}}]}}"#)
}

#[tokio::test]
async fn request_and_stream_pass_untouched() {
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
    let origin = Origin::answering(&(EVENTS.to_owned() + &chunk(event) + &chunk("data: [DONE]\n\n") + END)).await;
    let router = Router::before(&[&origin], "");
    let request = post(PATH, &body("x")).replacen("host: router", "host: router\r\nauthorization: Bearer sagemaker", 1);
    let answer = router.ask(request).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(answer.text(), format!("{event}data: [DONE]\n\n"));
    let seen = &origin.seen()[0];
    assert_eq!((seen.line.as_str(), seen.body.clone()), ("POST /v1/chat/completions HTTP/1.1", body("x").into_bytes()));
    assert_eq!((seen.header("authorization"), seen.header("content-type")), (None, Some("application/json".into())));
}

#[tokio::test]
async fn the_prompt_cache_key_separates_equal_texts() {
    let origin = Origin::answering(&origin::json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let key = async |body: String| router.ask(post(PATH, &body)).await.header("x-isotherm-key").unwrap().to_owned();
    let plain = key(body("x")).await;
    assert_eq!(key(body("x").replacen('{', r#"{"stream":false,"#, 1)).await, plain);
    assert_ne!(key(body("x").replacen('{', r#"{"prompt_cache_key":"k","#, 1)).await, plain);
}

#[tokio::test]
async fn errors_have_openais_form_and_sagemakers_codes() {
    let origin = Origin::answering(&origin::json(400, "too long")).await;
    let router = Router::before(&[&origin], "");
    let ask = async |request: String| {
        let answer = router.ask(request).await;
        let error: Value = serde_json::from_slice(&answer.body).unwrap();
        (answer.status, error)
    };
    let (status, error) = ask(post("/endpoints/nope/openai/v1/chat/completions", &body("x"))).await;
    let message = "Endpoint nope of account 123456789012 not found.";
    let expected = json!({"error": {"message": message, "type": "invalid_request_error", "code": "validation_error"}});
    assert_eq!((status, error), (400, expected));

    let (status, error) = ask(post(PATH, &body("x"))).await;
    assert_eq!(
        (status, &error["error"]["type"], &error["error"]["code"]),
        (400, &json!("server_error"), &json!("model_error"))
    );
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("Received client error (400) from primary with message \"too long\". See https://"));

    let named = post(PATH, &body("x")).replacen(
        "host: router",
        "host: router\r\nx-amzn-sagemaker-inference-component: llama",
        1,
    );
    let (status, error) = ask(named).await;
    assert_eq!((status, &error["error"]["code"]), (400, &json!("validation_error")));
    let (status, error) = ask(post(PATH, "no json")).await;
    assert_eq!((status, &error["error"]["code"]), (400, &json!("validation_error")));
}

#[tokio::test]
async fn only_streams_get_the_time_of_streams() {
    let origin = Origin::start(|_| {
        vec![Step::Pause(std::time::Duration::from_millis(400)), Step::Send(origin::json(200, "{}").into())]
    })
    .await;
    let router = Router::before(&[&origin], "timeouts: { invocation: 100ms, invocation_stream: 10s }\n");
    let answer = router.ask(post(PATH, &body("x"))).await;
    assert_eq!((answer.status, answer.header("x-should-retry")), (504, Some("false")));
    assert_eq!(router.ask(post(PATH, &body("x").replacen('{', r#"{"stream":true,"#, 1))).await.status, 200);
}

#[tokio::test]
async fn components_stand_in_the_path() {
    let origin = Origin::answering(&origin::json(200, r#"{"data":[{"id":"m"}]}"#)).await;
    let router = Router::before(&[&origin], "");
    let mut with_components = endpoint("ics", vec![variant("AllTraffic", 1.0, Vec::new())]);
    with_components.components = Some(vec![base("llama", vec![copy("llama-1", "host-1", &origin)])]);
    router.fleet.put_endpoint(&with_components).unwrap();
    let at = |component: &str| format!("/endpoints/ics/inference-components/{component}/openai/v1/chat/completions");
    let answer = router.ask(post(&at("llama"), &body("x"))).await;
    assert_eq!((answer.status, answer.header("x-isotherm-instance")), (200, Some("llama-1")));
    assert_eq!(router.ask(post(&at("gpt"), &body("x"))).await.status, 400);
    assert_eq!(router.ask(post("/endpoints/ics/openai/v1/chat/completions", &body("x"))).await.status, 400);
}

#[tokio::test]
async fn models_are_those_of_the_endpoint() {
    let origin =
        Origin::answering(&origin::json(200, r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#)).await;
    let router = Router::before(&[&origin], "");
    let _tasks = router.fleet.spawn();
    until("its models are listed", || !router.fleet.topology().models(|_| true).is_empty()).await;
    let answer = router.ask(get("/endpoints/chat/openai/v1/models")).await;
    assert_eq!(answer.text(), r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#);
    assert_eq!(router.ask(get("/endpoints/nope/openai/v1/models")).await.status, 400);
}
