//! Sticky sessions: begun by a container, kept to its instance, ended by it, by time, or with the instance.

use serde_json::Value;

use crate::client::{Answer, post};
use crate::managed::{endpoint, instance, variant};
use crate::origin::{Origin, Seen, Step, json};
use crate::router::Router;

/// A container that begins, serves and closes sessions; `expires` is when they end.
async fn container(name: &'static str, expires: &'static str) -> Origin {
    Origin::start(move |seen: &Seen| {
        let session = seen.header("x-amzn-sagemaker-session-id");
        let line = match (session.as_deref(), &seen.body[..]) {
            (Some("NEW_SESSION"), _) => format!("x-amzn-sagemaker-new-session-id: s-{name}; Expires={expires}\r\n"),
            (Some(id), b"close") => format!("x-amzn-sagemaker-closed-session-id: {id}\r\n"),
            _ => String::new(),
        };
        let answer = json(200, name).replacen("content-type", &format!("{line}content-type"), 1);
        vec![Step::Send(answer.into_bytes())]
    })
    .await
}

const LATER: &str = "2999-01-01T00:00:00Z";

fn request(path: &str, session: &str, body: &str) -> String {
    let line = format!("host: router\r\nx-amzn-sagemaker-session-id: {session}");
    post(path, body).replacen("host: router", &line, 1)
}

fn invoke(session: &str, body: &str) -> String {
    request("/endpoints/chat/invocations", session, body)
}

fn message(answer: &Answer) -> String {
    assert_eq!((answer.status, answer.header("x-amzn-errortype")), (400, Some("ValidationError")), "{}", answer.text());
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    body["Message"].as_str().unwrap().to_owned()
}

/// The id of a new session.
async fn begin(router: &Router) -> String {
    let answer = router.ask(invoke("NEW_SESSION", "begin")).await;
    let told = answer.header("x-amzn-sagemaker-new-session-id").unwrap().to_owned();
    let (id, expires) = told.split_once("; Expires=").unwrap();
    assert_eq!(expires, LATER);
    id.to_owned()
}

#[tokio::test]
async fn a_session_stays_with_the_instance_that_began_it() {
    let (a, b) = (container("a", LATER).await, container("b", LATER).await);
    let router = Router::before(&[&a, &b], "");
    let id = begin(&router).await;
    let home = id.strip_prefix("s-").unwrap().to_owned();
    for number in 0..12 {
        let answer = router.ask(invoke(&id, &number.to_string())).await;
        assert_eq!((answer.text(), answer.header("x-isotherm-reason")), (home.clone(), Some("session")));
        let stream = request("/endpoints/chat/invocations-response-stream", &id, "x");
        assert_eq!(router.ask(stream).await.header("x-isotherm-instance"), Some(&*home));
    }
    let seen = if home == "a" { a.seen() } else { b.seen() };
    assert_eq!(seen[1].header("x-amzn-sagemaker-session-id"), Some(id));
}

#[tokio::test]
async fn a_closed_session_is_forgotten() {
    let a = container("a", LATER).await;
    let router = Router::before(&[&a], "");
    let id = begin(&router).await;
    let answer = router.ask(invoke(&id, "close")).await;
    assert_eq!(answer.header("x-amzn-sagemaker-closed-session-id"), Some(&*id));
    assert_eq!(message(&router.ask(invoke(&id, "x")).await), "Session s-a of endpoint chat not found.");
    assert_eq!(a.seen().len(), 2);
}

#[tokio::test]
async fn a_session_that_has_expired_is_told_so() {
    let a = container("a", "2020-01-01T00:00:00Z").await;
    let router = Router::before(&[&a], "");
    assert_eq!(router.ask(invoke("NEW_SESSION", "")).await.status, 200);
    assert!(message(&router.ask(invoke("s-a", "x")).await).starts_with("Session s-a has expired."));
}

#[tokio::test]
async fn a_session_ends_with_its_instance_and_moves_nowhere() {
    let (a, b) = (container("a", LATER).await, container("b", LATER).await);
    let router = Router::before(&[&a], "");
    let put = |id: &str, origin: &Origin| {
        let variants = vec![variant("AllTraffic", 1.0, vec![instance(id, origin)])];
        router.fleet.put_endpoint(&endpoint("two", variants)).unwrap();
    };
    let ask = async |session: &str| router.ask(request("/endpoints/two/invocations", session, "x")).await;
    put("a", &a);
    assert_eq!(ask("NEW_SESSION").await.status, 200);
    assert_eq!(ask("s-a").await.text(), "a");
    // Its endpoint is the only one that knows it.
    assert!(message(&router.ask(invoke("s-a", "x")).await).contains("not found"));
    put("b", &b);
    assert!(message(&ask("s-a").await).starts_with("The instance of session s-a is no longer available"));
    // It does not come back with an instance of the same name.
    put("a", &a);
    assert!(message(&ask("s-a").await).contains("not found"));
    assert!(b.seen().is_empty());
}

#[tokio::test]
async fn a_session_is_not_resent_elsewhere() {
    let failing = Origin::start(|seen: &Seen| {
        let begins = seen.header("x-amzn-sagemaker-session-id").as_deref() == Some("NEW_SESSION");
        let line = format!("x-amzn-sagemaker-new-session-id: s-1; Expires={LATER}\r\ncontent-type");
        let answer = if begins { json(200, "").replacen("content-type", &line, 1) } else { json(500, "oops") };
        vec![Step::Send(answer.into_bytes())]
    })
    .await;
    let other = container("b", LATER).await;
    let router = Router::before(&[&other], "");
    let put = |instances| {
        router.fleet.put_endpoint(&endpoint("two", vec![variant("AllTraffic", 1.0, instances)])).unwrap();
    };
    let ask = async |session: &str| router.ask(request("/endpoints/two/invocations", session, "x")).await;
    put(vec![instance("a", &failing)]);
    assert_eq!(ask("NEW_SESSION").await.status, 200);
    put(vec![instance("a", &failing), instance("b", &other)]);
    assert_eq!(ask("s-1").await.status, 424);
    assert!(other.seen().is_empty());
}
