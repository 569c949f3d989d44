//! The files of JSONTestSuite as bodies: answered or refused in words, and passed on byte for byte.

use std::time::Duration;

use serde_json::Value;

use crate::origin::{Origin, json};
use crate::router::Router;
use crate::stopwatch::Stopwatch;

/// Name and bytes of each file.
fn files() -> Vec<(String, Vec<u8>)> {
    let files: Vec<Value> = serde_json::from_str(include_str!("../../../wire/tests/json_test_suite.json")).unwrap();
    let bytes = |text: &str| text.chars().map(|byte| u8::try_from(byte).unwrap()).collect::<Vec<u8>>();
    let files = files.iter().map(|file| {
        let unit = bytes(file[1].as_str().unwrap());
        (file[0].as_str().unwrap().to_owned(), unit.repeat(file[2].as_u64().unwrap_or(1) as usize))
    });
    files.collect()
}

fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nhost: router\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[tokio::test]
async fn every_file_of_jsons_test_suite_is_passed_on_unchanged_or_refused_in_words() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let files = files();
    assert_eq!(files.len(), 318);
    let mut client = router.connect().await;
    let mut slowest = Duration::ZERO;
    for (name, bytes) in &files {
        // As a member of a request, and as the request itself.
        let member = [&br#"{"prompt":"x","more":"#[..], bytes, b"}"].concat();
        for (path, body, must_pass) in [
            ("/v1/completions", &member, name.starts_with('y')),
            ("/v1/completions", bytes, false),
            // Keyed by its bytes, whatever they are.
            ("/invocations", bytes, true),
        ] {
            let seen = origin.seen().len();
            let asked = Stopwatch::start();
            client.send(post(path, body)).await;
            let answer = client.answer().await;
            slowest = slowest.max(asked.elapsed());
            match answer.status {
                200 => {
                    let passed = &origin.seen()[seen..];
                    assert!(passed.len() == 1 && passed[0].body == *body, "{name} to {path} has changed");
                }
                400 => {
                    assert!(!must_pass, "{name} to {path}: {}", answer.text());
                    assert!(answer.text().contains(r#""type":"invalid_request_error""#), "{}", answer.text());
                    assert_eq!(origin.seen().len(), seen, "{name} to {path} was refused and sent");
                }
                other => panic!("{name} to {path}: {other} {}", answer.text()),
            }
        }
    }
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
}
