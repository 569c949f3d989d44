//! Who is let in on the data paths: signatures, bearer tokens, and what a key may call.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::client::{Answer, get, post, until};
use crate::managed::{endpoint, instance, variant};
use crate::origin::{Origin, json};
use crate::router::Router;
use crate::signer::{ALICE, Signer};

const CHAT: &str = "/v1/chat/completions";
const NATIVE: &str = "/endpoints/chat/invocations";
const OPENAI: &str = "/endpoints/chat/openai/v1/chat/completions";
const BODY: &str = r#"{"messages":[{"role":"user","content":"hi"}]}"#;

/// The line of a keys file by which a signer is known.
fn line(signer: &Signer, options: &str) -> String {
    format!("alice aws:{}:{} {options}\n", signer.access_key, signer.secret)
}

/// A keys file with these lines, and the line of a configuration that names it.
pub(crate) fn keys(lines: &str) -> (tempfile::NamedTempFile, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines).unwrap();
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
    let top = format!("auth: {{ keys_file: {} }}\n", file.path().display());
    (file, top)
}

fn error_type(answer: &Answer) -> Option<&str> {
    answer.header("x-amzn-errortype")
}

fn with_token(path: &str, token: &str) -> String {
    post(path, BODY).replacen("host: router", &format!("host: router\r\nauthorization: Bearer {token}"), 1)
}

/// A read with a bearer token of Alice's.
fn reading(path: &str) -> String {
    get(path).replacen("host: router", &format!("host: router\r\nauthorization: Bearer {}", ALICE.token(60)), 1)
}

#[tokio::test]
async fn a_signed_request_is_let_in_and_its_signature_stays_here() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let (_file, top) = keys(&line(&ALICE, ""));
    let router = Router::before(&[&origin], &top);
    let token = ("x-amz-security-token", "TEMPORARY/+==");
    for path in [CHAT, NATIVE, "/invocations"] {
        let answer = router.ask(ALICE.post(path, &[("content-type", "application/json"), token], BODY)).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    assert_eq!(origin.seen().len(), 3);
    for seen in origin.seen() {
        assert_eq!(seen.body, BODY.as_bytes());
        assert_eq!((seen.header("authorization"), seen.header("x-amz-security-token")), (None, None));
    }
}

#[tokio::test]
async fn what_proves_nothing_is_refused_in_the_callers_dialect() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let (_file, top) = keys(&line(&ALICE, ""));
    let router = Router::before(&[&origin], &top);
    let late = Signer { at: -1_000, ..ALICE }.post(NATIVE, &[], BODY);
    let early = Signer { at: 1_000, ..ALICE }.post(NATIVE, &[], BODY);
    let tampered = ALICE.post(NATIVE, &[], BODY).replace("hi", "ho");
    let halves = ALICE.post(NATIVE, &[], BODY).replace("SignedHeaders", "Headers");
    for (request, status, code, message) in [
        (post(NATIVE, BODY), 403, "MissingAuthenticationTokenException", "Missing Authentication Token"),
        (
            Signer { access_key: "AKIDNOBODY", ..ALICE }.post(NATIVE, &[], BODY),
            403,
            "UnrecognizedClientException",
            "The security token included in the request is invalid.",
        ),
        (
            Signer { secret: "another secret of 40 characters in length", ..ALICE }.post(NATIVE, &[], BODY),
            403,
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided.",
        ),
        (tampered, 403, "InvalidSignatureException", "The request signature we calculated does not match"),
        (late, 403, "InvalidSignatureException", "Signature expired: "),
        (early, 403, "InvalidSignatureException", "Signature not yet current: "),
        (
            Signer { service: "s3", ..ALICE }.post(NATIVE, &[], BODY),
            403,
            "InvalidSignatureException",
            "Credential should be scoped to correct service: 'sagemaker'.",
        ),
        (halves, 400, "IncompleteSignatureException", "Authorization header requires 'SignedHeaders' parameter."),
        (
            post(&format!("{NATIVE}?X-Amz-Algorithm=AWS4-HMAC-SHA256"), BODY),
            400,
            "IncompleteSignatureException",
            "AWS query-string parameters must include",
        ),
    ] {
        let answer = router.ask(&request).await;
        assert_eq!((answer.status, error_type(&answer)), (status, Some(code)), "{request}");
        assert!(answer.text().contains(message), "{message} in {}", answer.text());
    }
    let answer = router.ask(Signer { at: -1_000, ..ALICE }.post(CHAT, &[], BODY)).await;
    assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")));
    assert!(answer.text().contains(r#""message":"Signature expired: "#), "{}", answer.text());
    assert!(origin.seen().is_empty());
    assert_eq!(router.metric("isotherm_requests_total", &["outcome=\"ok\""]), 0.0);
}

#[tokio::test]
async fn the_body_of_a_stranger_is_not_waited_for() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let (_file, top) = keys(&line(&ALICE, ""));
    let router = Router::before(&[&origin], &top);
    let mut client = router.connect().await;
    client.send(Signer { access_key: "AKIDNOBODY", ..ALICE }.head(NATIVE, &[], BODY)).await;
    let answer = tokio::time::timeout(Duration::from_secs(5), client.answer()).await.unwrap();
    assert_eq!(error_type(&answer), Some("UnrecognizedClientException"));
}

#[tokio::test]
async fn a_signature_does_not_lift_the_limit_of_bodies() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let (_file, top) = keys(&line(&ALICE, ""));
    let router = Router::before(&[&origin], &format!("{top}limits: {{ body: 40B, invocation_body: 40B }}\n"));
    let chunked = |path: &str| {
        let (head, body) = (ALICE.head(path, &[], BODY), format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len()));
        head.replace(&format!("content-length: {}", BODY.len()), "transfer-encoding: chunked") + &body
    };
    for request in [ALICE.post(CHAT, &[], BODY), chunked(CHAT), chunked(NATIVE)] {
        assert_eq!(router.ask(&request).await.status, 413, "{request}");
    }
    assert!(origin.seen().is_empty());
}

#[tokio::test]
async fn bearer_tokens_open_the_openai_paths_until_they_expire() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let (_file, top) =
        keys(&(line(&ALICE, "") + "bob sha256:0f2c10bf3d128c719c6bfa4ecbae94b7fceebaea6e4438fef38a90e5acc326f3"));
    let router = Router::before(&[&origin], &top);
    for path in [OPENAI, CHAT] {
        let answer = router.ask(with_token(path, &ALICE.token(43_200))).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    assert_eq!(router.ask(with_token(OPENAI, "sk-1")).await.status, 200, "a key of the router's own");
    for seen in origin.seen() {
        assert_eq!(seen.header("authorization"), None);
    }
    let forged = Signer { secret: "another secret of 40 characters in length", ..ALICE };
    for (token, message) in [
        (Signer { at: -100, ..ALICE }.token(60), "The security token included in the request is expired"),
        (forged.token(60), "The request signature we calculated does not match"),
        (
            Signer { access_key: "AKIDNOBODY", ..ALICE }.token(60),
            "The security token included in the request is invalid.",
        ),
        (ALICE.token(60) + "x", "The bearer token included in the request is invalid."),
    ] {
        let answer = router.ask(with_token(OPENAI, &token)).await;
        assert!(matches!(answer.status, 401 | 403), "{}", answer.status);
        assert!(answer.text().contains(message), "{message} in {}", answer.text());
    }
    let answer = router.ask(ALICE.post(OPENAI, &[], BODY)).await;
    assert!(answer.status == 403 && answer.text().contains("takes bearer tokens"), "{}", answer.text());
    let answer = router.ask(with_token(NATIVE, &ALICE.token(60))).await;
    assert_eq!((answer.status, error_type(&answer)), (403, Some("UnrecognizedClientException")));
    assert_eq!(origin.seen().len(), 3);
}

#[tokio::test]
async fn what_has_expired_is_told_by_name_on_every_path() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let over = Signer { access_key: "AKIDOVER", ..ALICE };
    let lines = line(&ALICE, "expires=2099-01-01T00:00:00Z")
        + &line(&over, "expires=2026-01-01T00:00:00Z")
        + "bob sha256:0f2c10bf3d128c719c6bfa4ecbae94b7fceebaea6e4438fef38a90e5acc326f3 expires=2026-01-01T00:00:00Z\n";
    let (_file, top) = keys(&lines);
    let router = Router::before(&[&origin], &top);
    let message = "The security token included in the request is expired";
    // AWS's form: a key whose time is over, with its session's token or without.
    for headers in [&[][..], &[("x-amz-security-token", "TEMPORARY/+==")][..]] {
        let answer = router.ask(over.post(NATIVE, headers, BODY)).await;
        assert_eq!((answer.status, error_type(&answer)), (403, Some("ExpiredTokenException")), "{}", answer.text());
        assert_eq!(answer.text(), format!(r#"{{"__type":"ExpiredTokenException","message":"{message}"}}"#));
    }
    // OpenAI's form: a token after its time, a token of such a key, such a key's signature, and an opaque key.
    let late = Signer { at: -100, ..ALICE }.token(60);
    for request in [
        with_token(OPENAI, &late),
        with_token(OPENAI, &over.token(60)),
        with_token(OPENAI, "sk-1"),
        with_token(CHAT, &late),
        with_token(CHAT, &over.token(60)),
        with_token(CHAT, "sk-1"),
        over.post(CHAT, &[], BODY),
    ] {
        let answer = router.ask(&request).await;
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")), "{request}");
        let error = serde_json::from_str::<serde_json::Value>(&answer.text()).unwrap()["error"].clone();
        assert_eq!(error["code"], "expired_token", "{request}: {error}");
        assert_eq!((&error["message"], &error["type"]), (&message.into(), &"authentication_error".into()));
    }
    assert!(origin.seen().is_empty());
    assert_eq!(router.ask(ALICE.post(NATIVE, &[], BODY)).await.status, 200, "a key whose time is not over");
}

#[tokio::test]
async fn a_key_calls_only_the_endpoints_that_it_names() {
    let origin = Origin::answering(&json(200, "{}")).await;
    for (options, allowed) in [("endpoints=other,Chat", true), ("endpoints=other", false)] {
        let (_file, top) = keys(&line(&ALICE, options));
        let router = Router::before(&[&origin], &top);
        for path in [CHAT, NATIVE] {
            let answer = router.ask(ALICE.post(path, &[], BODY)).await;
            assert_eq!(answer.status, if allowed { 200 } else { 403 }, "{options} {path}");
            let message = "User: arn:aws:iam::123456789012:user/alice is not authorized to perform: \
                           sagemaker:InvokeEndpoint on resource: arn:aws:sagemaker:eu-west-1:123456789012:endpoint/chat";
            assert_eq!(answer.text().contains(message), !allowed, "{}", answer.text());
            if path == NATIVE && !allowed {
                assert_eq!(error_type(&answer), Some("AccessDeniedException"));
            }
        }
        let token = router.ask(with_token(OPENAI, &ALICE.token(60))).await;
        assert_eq!(token.status, if allowed { 200 } else { 403 });
    }
    assert_eq!(origin.seen().len(), 3);
}

#[tokio::test]
async fn a_key_reaches_the_endpoints_of_its_account_and_no_others_on_any_path() {
    let models = |id: &str| json(200, &format!(r#"{{"object":"list","data":[{{"id":"{id}"}}]}}"#));
    let (ours, hers) = (Origin::answering(&models("ours")).await, Origin::answering(&models("hers")).await);
    let (_file, top) = keys(&line(&ALICE, "account=210987654321"));
    let router = Router::before(&[&ours], &top);
    let asking = |model: &str| ALICE.post(CHAT, &[], &format!(r#"{{"model":"{model}","messages":[]}}"#));
    for request in [ALICE.post(CHAT, &[], BODY), asking("ours"), ALICE.post("/invocations", &[], BODY)] {
        assert_eq!(router.ask(&request).await.status, 503, "her account has no endpoint: {request}");
    }
    assert_eq!(router.ask(ALICE.post(NATIVE, &[], BODY)).await.status, 400);
    let managed = endpoint("210987654321/chat", vec![variant("AllTraffic", 1.0, vec![instance("h", &hers)])]);
    router.fleet.put_endpoint(&managed).unwrap();
    let _tasks = router.fleet.spawn();
    until("the models of both are listed", || router.fleet.topology().models(|_| true).len() == 2).await;
    for request in [ALICE.post(CHAT, &[], BODY), asking("hers"), ALICE.post(NATIVE, &[], BODY)] {
        assert_eq!(router.ask(&request).await.header("x-isotherm-instance"), Some("h"), "{request}");
    }
    assert_eq!(router.ask(asking("ours")).await.status, 404);
    let list = router.ask(reading("/v1/models")).await.text();
    assert_eq!(list, r#"{"object":"list","data":[{"id":"hers"}]}"#);
    assert_eq!(router.ask(reading("/v1/models/ours")).await.status, 404);
    let asked = |seen: &crate::origin::Seen| seen.line.starts_with("POST");
    assert!(!ours.seen().iter().any(asked), "nothing of hers went to another account");
}

#[tokio::test]
async fn a_key_sees_only_models_of_the_endpoints_that_it_names() {
    let origin = Origin::answering(&json(200, r#"{"object":"list","data":[{"id":"m"}]}"#)).await;
    for (options, list) in [("endpoints=chat", r#"[{"id":"m"}]"#), ("endpoints=other", "[]")] {
        let (_file, top) = keys(&line(&ALICE, options));
        let router = Router::before(&[&origin], &top);
        let _tasks = router.fleet.spawn();
        until("its model is listed", || !router.fleet.topology().models(|_| true).is_empty()).await;
        let answer = router.ask(reading("/v1/models")).await;
        assert_eq!(answer.text(), format!(r#"{{"object":"list","data":{list}}}"#), "{options}");
    }
}

#[tokio::test]
async fn without_keys_any_credentials_pass_in_but_awss_not_on() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let stranger = Signer { access_key: "test", secret: "test", at: -100_000, ..ALICE };
    for request in [
        stranger.post(CHAT, &[], BODY),
        stranger.post(NATIVE, &[], BODY),
        stranger.post(OPENAI, &[], BODY),
        with_token(CHAT, &stranger.token(60)),
        with_token(OPENAI, "anything"),
    ] {
        assert_eq!(router.ask(&request).await.status, 200, "{request}");
    }
    assert!(origin.seen().iter().all(|seen| seen.header("authorization").is_none()));
}
