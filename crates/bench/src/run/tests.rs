//! Runs against a server that behaves, and against one that does not.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use isotherm_report::{FailureKind, RequestRecord};
use isotherm_workload::{Documents, Plan};

use super::mock::{Answer, Mock, Step, event, stream};
use super::{Run, RunError, run};
use crate::{ModelsError, Options, Target, first_model};

fn plan(users: u32) -> Plan {
    let think = Duration::from_millis(4);
    Plan::new(Documents { users, think, document_tokens: 50, ..Documents::for_instances(2) }, 1).unwrap()
}

fn options(warm_up: u64, requests: u64) -> Options {
    let request_timeout = Duration::from_secs(10);
    Options { warm_up, requests, speed: 1.0, request_timeout, ..Options::for_users(1) }
}

fn drive(mock: &Mock, users: u32, options: &Options) -> Run {
    let target = Target::new(&format!("http://{}", mock.address), "m").unwrap();
    run(&target, &plan(users), 1, options, &()).unwrap()
}

#[test]
fn time_to_first_token_ends_at_the_first_content_and_not_before() {
    let wait = Duration::from_millis(40);
    let mock = Mock::start(move |_, _| {
        let mut steps = stream(3, 200, 160);
        steps.insert(1, Step::Wait(wait));
        let mut answer = Answer::sse(steps);
        answer.headers.push(("x-isotherm-instance", "chat-1".to_owned()));
        answer.headers.push(("x-isotherm-reason", "home".to_owned()));
        answer.headers.push(("x-isotherm-home", "chat-1".to_owned()));
        answer
    });
    let record = drive(&mock, 1, &options(0, 1)).records.remove(0);
    assert_eq!((&record.failure, record.status), (&None, Some(200)));
    assert!(record.ttft().is_some_and(|ttft| ttft >= wait), "{record:?}");
    assert!(record.end >= record.first_token.unwrap());
    assert_eq!((record.prompt_tokens, record.cached_tokens, record.output_tokens), (Some(200), Some(160), Some(3)));
    assert_eq!((record.instance.as_deref(), record.reason.as_deref()), (Some("chat-1"), Some("home")));
    assert_eq!(record.home.as_deref(), Some("chat-1"));
}

#[test]
fn sends_as_many_as_asked_one_at_a_time_for_each_user_over_one_connection() {
    let mock = Mock::start(|_, _| Answer::sse(stream(2, 100, 0)));
    let run = drive(&mock, 5, &options(10, 40));
    let sequences: Vec<u64> = run.records.iter().map(|record| record.sequence).collect();
    assert_eq!(sequences, (0..50).collect::<Vec<u64>>());
    assert_eq!(run.records.iter().filter(|record| record.warm_up).count(), 10);
    assert!(run.records.iter().all(|record| record.failure.is_none() && record.instance.is_none()), "{run:?}");
    let mut by_user: BTreeMap<u32, Vec<&RequestRecord>> = BTreeMap::new();
    run.records.iter().for_each(|record| by_user.entry(record.user).or_default().push(record));
    assert_eq!(by_user.len(), 5);
    assert!(by_user.values().all(|records| records.windows(2).all(|pair| pair[0].end < pair[1].send)));
    assert_eq!((mock.requests(), mock.seen.connections.load(SeqCst)), (50, 5));
    let sent: usize = mock.seen.bodies.lock().unwrap().iter().map(|body| body.to_string().len()).sum();
    assert_eq!(run.request_bytes, sent as u64);
}

#[test]
fn tokens_without_text_are_an_answer_if_the_engine_counts_them() {
    let mock = Mock::start(|_, _| {
        let mut steps = stream(0, 100, 64);
        steps.insert(1, Step::Wait(Duration::from_millis(20)));
        steps.insert(2, event(r#"{"choices":[{"delta":{"content":""},"finish_reason":"length"}]}"#));
        steps[3] = event(r#"{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":2}}"#);
        Answer::sse(steps)
    });
    let run = drive(&mock, 1, &options(0, 2));
    assert!(run.records.iter().all(|record| record.failure.is_none()), "{run:?}");
    assert!(run.records.iter().all(|record| record.ttft() >= Some(Duration::from_millis(20))), "{run:?}");
}

#[test]
fn failures_are_told_apart_and_never_sent_again() {
    let mock = Mock::start(|number, _| match number {
        0 => Answer::json(503, r#"{"error":{"message":"no instance"}}"#),
        1 => Answer::sse(vec![event(r#"{"error":{"message":"out of blocks","code":500}}"#), event("[DONE]")]),
        2 => Answer::sse(vec![event(r#"{"choices":[{"delta":{"content":"a"}}]}"#)]),
        3 => Answer::sse(vec![
            event(r#"{"choices":[{"delta":{"content":"a"}}]}"#),
            Step::Wait(Duration::from_millis(20)),
            Step::Break,
        ]),
        4 => Answer::sse(vec![Step::Wait(Duration::from_secs(60))]),
        5 => Answer::json(200, "<html>"),
        6 => Answer::sse(vec![event(r#"{"choices":[{"delta":{"content":""}}]}"#), event("[DONE]")]),
        7 => Answer::sse(vec![Step::Break]),
        _ => Answer::sse(stream(2, 100, 0)),
    });
    let options = Options { request_timeout: Duration::from_secs(3), ..options(0, 10) };
    let run = drive(&mock, 1, &options);
    let kinds: Vec<Option<FailureKind>> =
        run.records.iter().map(|record| record.failure.as_ref().map(|failure| failure.kind)).collect();
    let expected = [
        FailureKind::Status,
        FailureKind::ErrorEvent,
        FailureKind::Truncated,
        FailureKind::Truncated,
        FailureKind::Timeout,
        FailureKind::Malformed,
        FailureKind::Malformed,
        FailureKind::Disconnect,
    ];
    assert_eq!(kinds[..8], expected.map(Some), "{run:?}");
    assert_eq!(kinds[8..], [None, None]);
    assert_eq!(mock.requests(), 10);
    let detail = |place: usize| run.records[place].failure.as_ref().unwrap().detail.as_str();
    assert!(detail(0).contains("no instance") && detail(1).contains("out of blocks"), "{run:?}");
    assert_eq!((run.records[0].status, run.records[4].status), (Some(503), Some(200)));
    assert!(run.records[2].first_token.is_some() && run.records[2].ttft().is_none());
}

#[test]
fn speed_shortens_thinking_and_lengthens_what_is_measured() {
    let mock = Mock::start(|_, _| {
        let mut steps = stream(1, 100, 0);
        steps.insert(0, Step::Wait(Duration::from_millis(10)));
        Answer::sse(steps)
    });
    let plan = Plan::new(
        Documents { users: 4, think: Duration::from_secs(2), document_tokens: 50, ..Documents::for_instances(1) },
        1,
    )
    .unwrap();
    let target = Target::new(&format!("http://{}/v1", mock.address), "m").unwrap();
    let run = run(&target, &plan, 1, &Options { speed: 100.0, ..options(0, 20) }, &()).unwrap();
    assert!(run.records.iter().all(|record| record.ttft().is_some_and(|ttft| ttft >= Duration::from_secs(1))));
    let engine_time = run.records.iter().map(|record| record.end).max().unwrap();
    assert!(engine_time > run.wall * 50 && engine_time > Duration::from_secs(10), "{engine_time:?} {:?}", run.wall);
}

#[test]
fn without_a_stream_the_first_token_is_the_whole_answer() {
    let mock = Mock::start(|_, body| {
        assert_eq!(body["stream"], serde_json::json!(false));
        Answer::json(
            200,
            r#"{"choices":[{"message":{"role":"assistant","content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#,
        )
    });
    let record = drive(&mock, 1, &Options { stream: false, ..options(0, 1) }).records.remove(0);
    assert_eq!((&record.failure, record.prompt_tokens, record.cached_tokens), (&None, Some(9), None));
    assert!(record.first_token.is_some_and(|first_token| first_token <= record.end));
}

#[test]
fn a_connection_that_the_server_closes_between_requests_is_opened_again() {
    let mock = Mock::start(|_, _| {
        let mut answer = Answer::sse(stream(1, 100, 0));
        answer.headers.push(("connection", "close".to_owned()));
        answer
    });
    let run = drive(&mock, 1, &options(0, 6));
    assert!(run.records.iter().all(|record| record.failure.is_none()), "{run:?}");
    assert_eq!(mock.seen.connections.load(SeqCst), 6);
}

#[test]
fn the_same_seeds_send_the_same_bytes_and_another_text_seed_other_words_of_the_same_lengths() {
    let bodies = |text_seed: u64| {
        let mock = Mock::start(|_, _| Answer::sse(stream(1, 100, 0)));
        let target = Target::new(&format!("http://{}", mock.address), "m").unwrap();
        run(&target, &plan(1), text_seed, &options(0, 12), &()).unwrap();
        let bodies = mock.seen.bodies.lock().unwrap().clone();
        bodies.iter().map(|body| body["messages"][0]["content"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (first, other) = (bodies(1), bodies(2));
    assert_eq!(first, bodies(1));
    assert!(first.iter().zip(&other).all(|(a, b)| a.len() == b.len() && a[..8] != b[..8]));
}

#[test]
fn a_target_that_nobody_listens_on_is_an_error_of_the_run() {
    // Taken, so that nobody else comes to listen there.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = socket.local_addr().unwrap();
    let target = Target::new(&format!("http://{closed}"), "m").unwrap();
    let error = run(&target, &plan(1), 1, &options(0, 1), &()).unwrap_err();
    assert!(matches!(&error, RunError::Unreachable(detail) if detail.contains(&closed.to_string())), "{error}");
}

#[test]
fn a_user_goes_on_after_a_failure_with_the_next_request() {
    let mock = Mock::start(|number, _| match number {
        0..3 => Answer::json(500, "{}"),
        _ => Answer::sse(stream(1, 100, 0)),
    });
    let run = drive(&mock, 1, &options(0, 6));
    let failed: Vec<bool> = run.records.iter().map(|record| record.failure.is_some()).collect();
    assert_eq!(failed, [true, true, true, false, false, false]);
    let bodies = mock.seen.bodies.lock().unwrap();
    assert!(bodies.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn the_first_model_of_the_listing_is_the_one_to_ask_for() {
    let listing = |status: u16, body: &'static str| {
        let mock = Mock::start(move |_, _| Answer::json(status, body));
        first_model(&Target::new(&format!("http://{}/v1", mock.address), "").unwrap())
    };
    assert_eq!(listing(200, r#"{"object":"list","data":[{"id":"llama"},{"id":"qwen"}]}"#).unwrap(), "llama");
    assert!(matches!(listing(200, r#"{"data":[]}"#), Err(ModelsError::None { .. })));
    let refused = listing(401, "{}").unwrap_err().to_string();
    assert!(refused.contains("it answers 401"), "{refused}");
}
