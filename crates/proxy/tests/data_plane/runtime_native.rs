//! `POST /endpoints/{name}/invocations`: what reaches the container, what comes back, and how failures are told.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Answer, get, post};
use crate::managed::{adapter, base, copy, endpoint, instance, variant};
use crate::origin::{self, END, EVENTS, Origin, Step, chunk};
use crate::router::Router;
use crate::stopwatch::Stopwatch;

/// A request with these further lines in its head.
fn invoke(lines: &str, body: &str) -> String {
    post("/endpoints/chat/invocations", body).replacen("host: router", &format!("host: router{lines}"), 1)
}

fn body_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{}", answer.text()))
}

fn validation_error(answer: &Answer) -> String {
    assert_eq!((answer.status, answer.header("x-amzn-errortype")), (400, Some("ValidationError")), "{}", answer.text());
    body_of(answer)["Message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn only_what_sagemaker_knows_reaches_the_container_and_comes_back() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/x\r\nx-amzn-sagemaker-custom-attributes: seen=1\r\n\
                  server: uvicorn\r\nx-amzn-sagemaker-new-session-id: a; Expires=2999-01-01T00:00:00Z\r\n\
                  content-length: 2\r\n\r\nhi";
    let origin = Origin::answering(answer).await;
    let router = Router::before(&[&origin], "");
    let request = invoke(
        "\r\naccept: text/x\r\nauthorization: AWS4-HMAC-SHA256 x\r\ncookie: a\r\nx-amz-date: 20261130T000000Z\r\n\
         x-amzn-sagemaker-custom-attributes: trace=1\r\nx-amzn-sagemaker-inference-id: i-1\r\n\
         x-amzn-sagemaker-target-variant: AllTraffic\r\nx-amzn-sagemaker-made-up: 1\r\nx-custom: 1",
        "\x01 any bytes",
    );
    let answer = router.ask(request).await;
    assert_eq!((answer.status, answer.text()), (200, "hi".into()));
    assert_eq!(answer.header("content-type"), Some("text/x"));
    assert_eq!(answer.header("x-amzn-invoked-production-variant"), Some("AllTraffic"));
    assert_eq!(answer.header("x-amzn-sagemaker-custom-attributes"), Some("seen=1"));
    assert_eq!(answer.header("x-amzn-requestid"), answer.header("x-request-id"));
    assert_eq!((answer.header("server"), answer.header("x-amzn-sagemaker-new-session-id")), (None, None));

    let seen = &origin.seen()[0];
    assert_eq!((seen.line.as_str(), &seen.body[..]), ("POST /invocations HTTP/1.1", &b"\x01 any bytes"[..]));
    let names: HashSet<&str> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "accept",
        "content-length",
        "content-type",
        "host",
        "x-amzn-sagemaker-custom-attributes",
        "x-amzn-sagemaker-inference-id",
        "x-amzn-sagemaker-target-variant",
        "x-request-id",
    ];
    assert_eq!(names, HashSet::from(expected));
    assert_eq!(seen.header("x-amzn-sagemaker-custom-attributes").as_deref(), Some("trace=1"));
    let labels = ["api=\"/endpoints/{name}/invocations\"", "code=\"2xx\""];
    router.idle().await;
    router.counts("isotherm_requests_total", &labels, 1.0).await;
}

#[tokio::test]
async fn the_first_bytes_of_the_body_and_the_prefix_aware_id_decide_the_home() {
    let origins =
        [Origin::answering(&origin::json(200, "{}")).await, Origin::answering(&origin::json(200, "{}")).await];
    let instances = format!(
        "        routing: {{ prefix_length: 8 }}\n        instances:\n          - {{ id: a, url: \"{}\" }}\n          - {{ \
         id: b, url: \"{}\" }}\n",
        origins[0].url(),
        origins[1].url()
    );
    let router = Router::with_variant(&instances, "");
    let key = async |lines: &str, body: &str| {
        router.ask(invoke(lines, body)).await.header("x-isotherm-key").unwrap().to_owned()
    };
    let plain = key("", "12345678 one").await;
    assert_eq!(key("", "12345678 two").await, plain);
    assert_ne!(key("", "1234567  one").await, plain);
    let of_tenant = key("\r\nx-amzn-sagemaker-prefix-aware-id: tenant  A", "12345678 one").await;
    assert_ne!(of_tenant, plain);
    assert_ne!(key("\r\nx-amzn-sagemaker-prefix-aware-id: tenant A", "12345678 one").await, of_tenant);
    assert_ne!(key("\r\nx-amzn-sagemaker-target-model: m.tar.gz", "12345678 one").await, plain);
}

#[tokio::test]
async fn unknown_names_and_bad_headers_are_validation_errors() {
    let origin = Origin::answering(&origin::json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let answer = router.ask(post("/endpoints/my-ep/invocations", "{}")).await;
    assert_eq!(validation_error(&answer), "Endpoint my-ep of account 123456789012 not found.");
    assert!(answer.header("x-amzn-requestid").is_some());
    let message = validation_error(&router.ask(invoke("\r\nx-amzn-sagemaker-target-variant: blue", "{}")).await);
    assert_eq!(message, "Variant blue of endpoint chat not found.");
    let message = validation_error(&router.ask(invoke("\r\nx-amzn-sagemaker-target-variant: a b", "{}")).await);
    assert!(message.starts_with("1 validation error detected: Value 'a b' at 'targetVariant' failed"), "{message}");
    let answer = router.ask(invoke("\r\nx-amzn-sagemaker-inference-component: llama", "{}")).await;
    assert!(validation_error(&answer).contains("is not allowed"));
    assert_eq!(router.ask(get("/endpoints/chat/invocations")).await.status, 405);
    assert!(origin.seen().is_empty());
}

#[tokio::test]
async fn a_body_over_six_mebibytes_is_413_in_awss_words() {
    let origin = Origin::answering(&origin::json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let head = "POST /endpoints/chat/invocations HTTP/1.1\r\nhost: r\r\ncontent-length: 6291457\r\n\r\n";
    let answer = router.ask(head).await;
    assert_eq!((answer.status, answer.header("x-amzn-errortype")), (413, None));
    assert!(answer.header("x-amzn-requestid").is_some());
    assert_eq!(body_of(&answer), json!({ "Message": "HTTP content length exceeded 6291456 bytes." }));
    let router = Router::before(&[&origin], "limits: { invocation_body: 4 }\n");
    assert_eq!(router.ask(invoke("", "12345")).await.status, 413);
    assert_eq!(router.ask(invoke("", "1234")).await.status, 200);
}

#[tokio::test]
async fn an_error_of_the_container_is_a_model_error_after_the_retry_rules() {
    let failing = Origin::answering(&origin::json(500, "oops")).await;
    let router = Router::before(&[&failing], "");
    let answer = router.ask(invoke("", "{}")).await;
    assert_eq!((answer.status, answer.header("x-amzn-errortype")), (424, Some("ModelError")));
    let body = body_of(&answer);
    assert_eq!((&body["OriginalStatusCode"], &body["OriginalMessage"]), (&json!(500), &json!("oops")));
    assert_eq!(body["ErrorCode"], "SERVER_ERROR_FROM_MODEL");
    let message = body["Message"].as_str().unwrap();
    assert!(
        message.starts_with("Received server error (500) from primary with message \"oops\". See https://us-east-1.")
    );
    router.counts("isotherm_invocation_faults_total", &["model_error"], 1.0).await;
    router.idle().await;

    let refusing = Origin::answering(&origin::json(400, r#"{"error":"too long"}"#)).await;
    let router = Router::before(&[&refusing], "");
    let body = body_of(&router.ask(invoke("", "{}")).await);
    assert_eq!((&body["ErrorCode"], &body["OriginalStatusCode"]), (&json!("CLIENT_ERROR_FROM_MODEL"), &json!(400)));
    assert_eq!(body["OriginalMessage"], r#"{"error":"too long"}"#);

    // Another instance does better.
    let good = Origin::answering(&origin::json(200, "{}")).await;
    let router = Router::before(&[&failing, &good], "");
    for number in 0..8 {
        assert_eq!(router.ask(invoke("", &number.to_string())).await.status, 200);
    }
}

#[tokio::test]
async fn a_container_that_is_silent_has_status_0() {
    let hanging = Origin::start(|_| vec![Step::Hang]).await;
    let router = Router::before(&[&hanging], "timeouts: { invocation: 200ms }\n");
    let answer = router.ask(invoke("", "{}")).await;
    assert_eq!((answer.status, answer.header("x-amzn-errortype")), (424, Some("ModelError")));
    let body = body_of(&answer);
    assert_eq!(body["OriginalStatusCode"], 0);
    assert!(body["Message"].as_str().unwrap().starts_with(
        "Received server error (0) from primary with message \"Your invocation timed out while waiting for a response"
    ));
    hanging.left().await;

    let broken = Origin::start(|_| vec![Step::Close]).await;
    let router = Router::before(&[&broken], "");
    let body = body_of(&router.ask(invoke("", "{}")).await);
    assert!(body["Message"].as_str().unwrap().starts_with("Amazon SageMaker could not get a response from the chat"));
}

#[tokio::test]
async fn an_error_whose_body_breaks_off_is_told_as_such() {
    let begun = "HTTP/1.1 500 X\r\ncontent-length: 100\r\n\r\nhalf";
    let steps = vec![Step::Send(begun.into()), Step::Close];
    let origin = Origin::start(move |_| steps.clone()).await;
    let router = Router::before(&[&origin], "");
    let message = body_of(&router.ask(invoke("", "{}")).await)["Message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("Received server error (500) from primary and could not load the entire response"));
}

#[tokio::test]
async fn an_answer_that_does_not_come_whole_is_a_model_error() {
    let whole = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf";
    let chunked = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}", chunk("half"));
    let event = format!("{EVENTS}{}", chunk("data: {\"choices\":[]}\n\n"));
    for begun in [whole, &chunked, &event] {
        let steps = vec![Step::Send(begun.into()), Step::Pause(Duration::from_millis(20)), Step::Close];
        let origin = Origin::start(move |_| steps.clone()).await;
        let router = Router::before(&[&origin], "");
        let answer = router.ask(invoke("", "{}")).await;
        assert_eq!((answer.status, answer.header("x-amzn-errortype")), (424, Some("ModelError")), "{begun}");
        let body = body_of(&answer);
        assert_eq!((&body["OriginalStatusCode"], &body["OriginalMessage"]), (&json!(500), &json!("")));
        let message = body["Message"].as_str().unwrap();
        let said = "Received server error (500) from primary and could not load the entire response body. See https://";
        assert!(message.starts_with(said), "{message}");
        router.idle().await;
        assert_eq!(origin.seen().len(), 1, "it may have generated: nothing is sent again");
        router.counts("isotherm_upstream_errors_total", &["truncated"], 1.0).await;
        router.counts("isotherm_invocation_faults_total", &["model_error"], 1.0).await;
    }
}

#[tokio::test]
async fn an_answer_over_the_limit_is_a_model_error_and_frees_the_container() {
    let endless = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}", chunk("12345"));
    for begun in ["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n1", &endless] {
        let steps = vec![Step::Send(begun.into()), Step::Hang];
        let origin = Origin::start(move |_| steps.clone()).await;
        let router = Router::before(&[&origin], "limits: { invocation_body: 4 }\n");
        let answer = router.ask(invoke("", "{}")).await;
        assert_eq!(answer.status, 424);
        assert!(answer.text().contains("could not load the entire response body"), "{}", answer.text());
        origin.left().await;
    }
    let origin = Origin::answering(&origin::json(200, "1234")).await;
    let router = Router::before(&[&origin], "limits: { invocation_body: 4 }\n");
    assert_eq!(router.ask(invoke("", "{}")).await.text(), "1234");
}

#[tokio::test]
async fn an_answer_that_takes_too_long_as_a_whole_or_pauses_is_a_time_out() {
    for limits in ["timeouts: { invocation: 200ms }\n", "timeouts: { idle: 200ms }\n"] {
        let begun = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf";
        let origin = Origin::start(|_| vec![Step::Send(begun.into()), Step::Hang]).await;
        let router = Router::before(&[&origin], limits);
        let body = body_of(&router.ask(invoke("", "{}")).await);
        assert_eq!(body["OriginalStatusCode"], 0);
        assert!(body["OriginalMessage"].as_str().unwrap().starts_with("Your invocation timed out"), "{body}");
        origin.left().await;
    }
}

#[tokio::test]
async fn an_answer_in_pieces_comes_as_one_with_its_length() {
    let events = ["data: {\"choices\":[]}\n\n", "data: [DONE]\n\n"];
    let steps: Vec<Step> = events.iter().map(|event| Step::Drip(chunk(event).into())).collect();
    let begun = Step::Send(EVENTS.into());
    for end in [Step::Send(END.into()), Step::Close] {
        // A stream whose last event has come is whole, however its connection ends.
        let steps = [std::slice::from_ref(&begun), &steps, &[end]].concat();
        let origin = Origin::start(move |_| steps.clone()).await;
        let router = Router::before(&[&origin], "");
        let answer = router.ask(invoke("", "{}")).await;
        let expected = events.concat();
        assert_eq!((answer.status, answer.text()), (200, expected.clone()));
        assert_eq!(answer.header("content-length"), Some(expected.len().to_string().as_str()));
        assert_eq!(answer.header("content-type"), Some("text/event-stream; charset=utf-8"));
    }
}

#[tokio::test]
async fn a_fleet_that_is_down_is_503() {
    let router = Router::before_urls(&["http://127.0.0.1:1".into()], "");
    let answer = router.ask(invoke("", "{}")).await;
    assert_eq!((answer.status, answer.header("x-amzn-errortype")), (503, Some("ServiceUnavailable")));
}

#[tokio::test]
async fn a_client_that_leaves_frees_the_container() {
    let origin = Origin::start(|_| vec![Step::Hang]).await;
    let router = Router::before(&[&origin], "");
    let mut client = router.connect().await;
    client.send(invoke("", "{}")).await;
    origin.asked(1).await;
    drop(client);
    let left = Stopwatch::start();
    origin.left().await;
    assert!(left.elapsed() < Duration::from_secs(2), "{:?}", left.elapsed());
    router.idle().await;
}

#[tokio::test]
async fn components_are_called_by_their_names() {
    let (one, two) =
        (Origin::answering(&origin::json(200, "1")).await, Origin::answering(&origin::json(200, "2")).await);
    let router = Router::before(&[&one], "");
    let mut with_components = endpoint("ics", vec![variant("AllTraffic", 1.0, Vec::new())]);
    with_components.components = Some(vec![
        base("llama", vec![copy("llama-1", "host-1", &one), copy("llama-2", "host-2", &two)]),
        base("empty", Vec::new()),
        adapter("sql", "llama", &["llama-2"]),
    ]);
    router.fleet.put_endpoint(&with_components).unwrap();
    let ask = async |component: &str, body: &str| {
        let line = format!("host: router\r\nx-amzn-sagemaker-inference-component: {component}");
        router.ask(post("/endpoints/ics/invocations", body).replacen("host: router", &line, 1)).await
    };

    let missing = router.ask(post("/endpoints/ics/invocations", "{}")).await;
    assert_eq!(body_of(&missing)["ErrorCode"], "INFERENCE_COMPONENT_NAME_MISSING");
    assert!(validation_error(&ask("gpt", "{}").await).contains("Inference Component gpt of endpoint ics not found."));
    let empty = ask("empty", "{}").await;
    assert!(validation_error(&empty).starts_with("Inference Component has no capacity to process this request."));
    router.counts("isotherm_invocation_faults_total", &["no_capacity"], 1.0).await;

    let answer = ask("llama", "{}").await;
    assert_eq!((answer.status, answer.header("x-amzn-invoked-production-variant")), (200, Some("AllTraffic")));
    let mut instances = HashSet::new();
    for number in 0..16 {
        let answer = ask("sql", &number.to_string()).await;
        instances.insert(answer.header("x-isotherm-instance").unwrap().to_owned());
    }
    assert_eq!(instances, HashSet::from(["llama-2".to_owned()]));
    let adapters = two.seen().iter().filter_map(|seen| seen.header("x-amzn-sagemaker-adapter-identifier")).count();
    assert_eq!(adapters, 16);
}

#[tokio::test]
async fn traffic_follows_the_weights_unless_a_variant_is_named() {
    let (blue, green) =
        (Origin::answering(&origin::json(200, "b")).await, Origin::answering(&origin::json(200, "g")).await);
    let router = Router::before(&[&blue], "");
    let variants =
        vec![variant("blue", 0.0, vec![instance("b", &blue)]), variant("green", 1.0, vec![instance("g", &green)])];
    router.fleet.put_endpoint(&endpoint("two", variants)).unwrap();
    let answer = router.ask(post("/endpoints/two/invocations", "{}")).await;
    assert_eq!((answer.text(), answer.header("x-amzn-invoked-production-variant")), ("g".into(), Some("green")));
    let named = post("/endpoints/two/invocations", "{}").replacen(
        "host: router",
        "host: router\r\nx-amzn-sagemaker-target-variant: blue",
        1,
    );
    assert_eq!(router.ask(named).await.header("x-amzn-invoked-production-variant"), Some("blue"));
    // Endpoints that are managed and the one of the file are different endpoints.
    router.fleet.remove_endpoint("two");
    assert_eq!(router.ask(post("/endpoints/two/invocations", "{}")).await.status, 400);
}
