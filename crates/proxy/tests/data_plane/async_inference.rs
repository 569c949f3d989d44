//! `POST /endpoints/{name}/async-invocations`: accepted at once, answered into files below one directory.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use isotherm_fleet::AsyncOutput;
use serde_json::Value;

use crate::client::{Answer, PATIENCE, post};
use crate::identity::keys;
use crate::managed::{endpoint, instance, variant};
use crate::origin::{EVENTS, Origin, Step, chunk, json};
use crate::router::Router;
use crate::signer::ALICE;

/// A router that keeps its buckets in `s3` of its directory.
async fn router(origin: &Origin) -> Router {
    Router::before(&[origin], "aws: { data_dir: state, async_dir: s3 }\n")
}

fn invoke(lines: &str, body: &str) -> String {
    post("/endpoints/chat/async-invocations", body).replacen("host: router", &format!("host: router{lines}"), 1)
}

/// The file that a place stands for.
fn file(router: &Router, uri: &str) -> PathBuf {
    router.directory().join("s3").join(uri.strip_prefix("s3://").unwrap())
}

fn place(router: &Router, answer: &Answer, what: &str) -> PathBuf {
    file(router, answer.header(&format!("x-amzn-sagemaker-{what}location")).unwrap())
}

async fn appears(path: &Path) -> Vec<u8> {
    let looking = async {
        loop {
            if let Ok(bytes) = std::fs::read(path) {
                return bytes;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("{} does not appear", path.display()))
}

/// Waits until nothing is kept any more.
async fn done(router: &Router) {
    let kept = || std::fs::read_dir(router.directory().join("s3/.accepted")).map_or(0, Iterator::count);
    for _ in 0..2_000 {
        if kept() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("jobs stay in the backlog");
}

fn message(answer: &Answer) -> String {
    assert_eq!((answer.status, answer.header("x-amzn-errortype")), (400, Some("ValidationError")), "{}", answer.text());
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    body["Message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_request_is_accepted_and_its_answer_written() {
    let origin = Origin::answering(&json(200, r#"{"answer":42}"#)).await;
    let router = router(&origin).await;
    let request = invoke(
        "\r\nx-amzn-sagemaker-content-type: a/b\r\nx-amzn-sagemaker-inference-id: order 1\r\nx-custom: 1",
        "question",
    );
    let answer = router.ask(request).await;
    assert_eq!((answer.status, answer.text()), (202, r#"{"InferenceId":"order 1"}"#.into()));
    let output = answer.header("x-amzn-sagemaker-outputlocation").unwrap();
    assert!(output.starts_with("s3://isotherm-async/chat/") && output.ends_with(".out"), "{output}");
    assert_eq!(appears(&place(&router, &answer, "output")).await, br#"{"answer":42}"#);
    done(&router).await;
    let seen = &origin.seen()[0];
    assert_eq!((seen.line.as_str(), &seen.body[..]), ("POST /invocations HTTP/1.1", &b"question"[..]));
    assert_eq!(seen.header("content-type").as_deref(), Some("a/b"));
    assert_eq!(seen.header("x-amzn-sagemaker-inference-id").as_deref(), Some("order 1"));
    assert_eq!(seen.header("x-custom"), None);
    assert!(!place(&router, &answer, "failure").exists());
}

#[tokio::test]
async fn the_input_may_lie_at_a_place_and_the_client_may_name_the_answer() {
    let origin = Origin::answering(&json(200, "answer")).await;
    let router = router(&origin).await;
    let input = file(&router, "s3://inputs/today/1.json");
    std::fs::create_dir_all(input.parent().unwrap()).unwrap();
    std::fs::write(&input, "a longer question").unwrap();
    let lines = "\r\nx-amzn-sagemaker-inputlocation: s3://inputs/today/1.json\r\n\
                 x-amzn-sagemaker-s3outputpathextension: mine/\r\nx-amzn-sagemaker-filename: one.json";
    let answer = router.ask(invoke(lines, "")).await;
    assert_eq!(answer.header("x-amzn-sagemaker-outputlocation"), Some("s3://isotherm-async/chat/mine/one.json"));
    assert_eq!(appears(&place(&router, &answer, "output")).await, b"answer");
    assert_eq!(origin.seen()[0].body, b"a longer question");
}

#[tokio::test]
async fn failures_are_told_in_files_of_their_own() {
    let origin = Origin::answering(&json(400, "too long")).await;
    let router = router(&origin).await;
    let answer = router.ask(invoke("", "question")).await;
    let told: Value = serde_json::from_slice(&appears(&place(&router, &answer, "failure")).await).unwrap();
    assert_eq!((&told["OriginalStatusCode"], &told["OriginalMessage"]), (&400.into(), &"too long".into()));
    done(&router).await;
    assert!(!place(&router, &answer, "output").exists());

    let answer = router.ask(invoke("\r\nx-amzn-sagemaker-inputlocation: s3://inputs/none.json", "")).await;
    let told = appears(&place(&router, &answer, "failure")).await;
    assert!(String::from_utf8(told).unwrap().contains("s3://inputs/none.json cannot be read"));
}

#[tokio::test]
async fn an_answer_that_breaks_off_or_takes_too_long_is_a_failure() {
    let steps = [Step::Close, Step::Hang]
        .map(|end| vec![Step::Send((EVENTS.to_owned() + &chunk("data: {\"choices\":[]}\n\n")).into()), end]);
    let origin = Origin::start(move |seen| steps[usize::from(seen.body == b"hang")].clone()).await;
    let router = router(&origin).await;
    for (body, lines) in [("close", ""), ("hang", "\r\nx-amzn-sagemaker-invocationtimeoutseconds: 1")] {
        let answer = router.ask(invoke(lines, body)).await;
        let told: Value = serde_json::from_slice(&appears(&place(&router, &answer, "failure")).await).unwrap();
        assert_eq!(told["ErrorCode"], "SERVER_ERROR_FROM_MODEL", "{body}");
        assert!(!place(&router, &answer, "output").exists(), "{body}");
    }
}

#[tokio::test]
async fn what_is_wrong_is_refused_at_once() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = router(&origin).await;
    let refused = async |lines: &str, body: &str| message(&router.ask(invoke(lines, body)).await);
    assert!(refused("", "").await.contains("InputLocation"));
    assert!(refused("\r\nx-amzn-sagemaker-inputlocation: s3://b/k", "{}").await.contains("mutually exclusive"));
    assert!(refused("\r\nx-amzn-sagemaker-inputlocation: s3://b/../../etc/passwd", "").await.contains("is no place"));
    assert!(refused("\r\nx-amzn-sagemaker-inputlocation: s3://.accepted/k", "").await.contains("is no place"));
    assert!(refused("\r\nx-amzn-sagemaker-inputlocation: https://b/k", "").await.contains("https://"));
    assert!(refused("\r\nx-amzn-sagemaker-s3outputpathextension: ../../x", "{}").await.contains("is no place"));
    assert!(refused("\r\nx-amzn-sagemaker-requestttlseconds: 5", "{}").await.contains("'requestTTLSeconds'"));
    assert!(refused("", &"x".repeat(128_001)).await.contains("128000"));
    let answer = router.ask(post("/endpoints/nope/async-invocations", "{}")).await;
    assert_eq!(message(&answer), "Endpoint nope of account 123456789012 not found.");
    let without = Router::before(&[&origin], "");
    assert!(message(&without.ask(invoke("", "{}")).await).contains("`aws` section"));
    assert!(origin.seen().is_empty());
}

#[tokio::test]
async fn answers_go_where_the_endpoint_says() {
    let origin = Origin::answering(&json(200, "answer")).await;
    let router = router(&origin).await;
    let mut managed = endpoint("later", vec![variant("AllTraffic", 1.0, vec![instance("a", &origin)])]);
    let (answers, failures) = ("s3://my-bucket/answers/".to_owned(), Some("s3://my-bucket/failures".to_owned()));
    managed.async_output = Some(AsyncOutput { answers, failures });
    router.fleet.put_endpoint(&managed).unwrap();
    let answer = router.ask(post("/endpoints/later/async-invocations", "x")).await;
    assert!(answer.header("x-amzn-sagemaker-outputlocation").unwrap().starts_with("s3://my-bucket/answers/"));
    assert!(answer.header("x-amzn-sagemaker-failurelocation").unwrap().starts_with("s3://my-bucket/failures/"));
    assert_eq!(appears(&place(&router, &answer, "output")).await, b"answer");
}

#[tokio::test]
async fn what_was_accepted_survives_a_restart() {
    let hanging = Origin::start(|_| vec![Step::Hang]).await;
    let mut router = router(&hanging).await;
    let answer = router.ask(invoke("", "question")).await;
    hanging.asked(1).await;
    // Its threads end in the middle of it.
    drop(router.plane.take());
    let output = answer.header("x-amzn-sagemaker-outputlocation").unwrap();
    assert!(!file(&router, output).exists());

    let good = Origin::answering(&json(200, "answer")).await;
    let directory = router.directory().join("s3");
    let again = Router::before(&[&good], &format!("aws: {{ data_dir: state, async_dir: {} }}\n", directory.display()));
    assert_eq!(appears(&file(&router, output)).await, b"answer");
    assert_eq!(good.seen()[0].body, b"question");
    done(&router).await;
    drop(again);
}

#[tokio::test]
async fn a_job_waits_until_an_instance_can_take_it() {
    let origin = Origin::answering(&json(200, "answer")).await;
    let router = router(&origin).await;
    let managed = |instances| endpoint("later", vec![variant("AllTraffic", 1.0, instances)]);
    router.fleet.put_endpoint(&managed(Vec::new())).unwrap();
    let answer = router.ask(post("/endpoints/later/async-invocations", "x")).await;
    assert_eq!(answer.status, 202);
    router.fleet.put_endpoint(&managed(vec![instance("a", &origin)])).unwrap();
    assert_eq!(appears(&place(&router, &answer, "output")).await, b"answer");
}

#[tokio::test]
async fn a_job_that_waited_longer_than_its_time_to_live_is_a_failure() {
    let origin = Origin::answering(&json(200, "answer")).await;
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("s3/.accepted");
    std::fs::create_dir_all(&kept).unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    // As an earlier process has left them: one whose time is over, one whose time ends while no instance can take it.
    let jobs = [("over", "chat", now - 61, 60), ("ending", "later", now, 2), ("in-time", "chat", now - 61, 600)];
    for (id, endpoint, accepted, time_to_live) in jobs {
        let job = serde_json::json!({
            "id": id, "endpoint": endpoint, "signed": null, "holder": null, "headers": [], "input": null,
            "answer": format!("s3://b/{id}.out"), "failure": format!("s3://b/{id}-error.out"),
            "accepted": accepted, "time_to_live": time_to_live, "timeout": 900,
        });
        std::fs::write(kept.join(id), format!("{job}\nquestion")).unwrap();
    }
    let s3 = directory.path().join("s3");
    let router = Router::before(&[&origin], &format!("aws: {{ data_dir: state, async_dir: {} }}\n", s3.display()));
    router.fleet.put_endpoint(&endpoint("later", vec![variant("AllTraffic", 1.0, Vec::new())])).unwrap();
    for id in ["over", "ending"] {
        let told: Value = serde_json::from_slice(&appears(&s3.join(format!("b/{id}-error.out"))).await).unwrap();
        assert_eq!(told["Message"], "The request waited longer than RequestTTLSeconds.", "{id}");
        assert!(!s3.join(format!("b/{id}.out")).exists());
    }
    assert!(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() >= now + 2, "no time to live ends early");
    assert_eq!(appears(&s3.join("b/in-time.out")).await, b"answer");
    assert_eq!(origin.seen().len(), 1, "only what was in time was run");
}

#[tokio::test]
async fn answers_of_endpoints_that_a_key_may_not_call_are_no_inputs() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let line = format!("alice aws:{}:{} endpoints=chat\n", ALICE.access_key, ALICE.secret);
    let (_file, top) = keys(&line);
    let router = Router::before(&[&origin], &format!("aws: {{ data_dir: state, async_dir: s3 }}\n{top}"));
    let mut managed = endpoint("secret", vec![variant("AllTraffic", 1.0, vec![instance("s", &origin)])]);
    managed.async_output = Some(AsyncOutput { answers: "s3://results/of-secret/".into(), failures: None });
    router.fleet.put_endpoint(&managed).unwrap();
    for (input, status) in [
        ("s3://isotherm-async/secret/1.out", 403),
        ("s3://Isotherm-Async/gone/1.out", 403),
        ("s3://isotherm-async/210987654321/chat/1.out", 403),
        ("s3://results/of-secret/1.out", 403),
        ("s3://isotherm-async/chat/1.out", 202),
        ("s3://results/1.in", 202),
    ] {
        let headers = [("x-amzn-sagemaker-inputlocation", input)];
        let answer = router.ask(ALICE.post("/endpoints/chat/async-invocations", &headers, "")).await;
        assert_eq!(answer.status, status, "{input}: {}", answer.text());
    }
}
