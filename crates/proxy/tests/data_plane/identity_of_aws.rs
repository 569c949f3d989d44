//! What AWS's services are told of their callers, and who does not get as far.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use isotherm_wire::aws::{Answering, AwsRequest, AwsService};

use crate::client::{get, post};
use crate::identity::keys;
use crate::origin::{Origin, json};
use crate::router::Router;
use crate::signer::{ALICE, Signer};

/// Answers with what it is told.
struct Echo;

impl AwsService for Echo {
    fn call(&self, request: AwsRequest) -> Answering {
        let AwsRequest { head, body, caller } = request;
        let text = format!(
            "{} {} {} {} {} {}",
            head.uri.path(),
            caller.account,
            caller.region,
            caller.access_key.as_deref().unwrap_or("-"),
            caller.name.as_deref().unwrap_or("-"),
            String::from_utf8_lossy(&body),
        );
        Box::pin(async { Response::new(Bytes::from(text)) })
    }
}

const TARGET: (&str, &str) = ("x-amz-target", "SageMaker.CreateEndpoint");

async fn router(lines: &str) -> (Router, Option<tempfile::NamedTempFile>) {
    let origin = Origin::answering(&json(200, "{}")).await;
    if lines.is_empty() {
        return (Router::with_service(&origin, "", Arc::new(Echo)), None);
    }
    let (file, top) = keys(lines);
    (Router::with_service(&origin, &top, Arc::new(Echo)), Some(file))
}

fn line(options: &str) -> String {
    format!("alice aws:{}:{} {options}\n", ALICE.access_key, ALICE.secret)
}

fn form(signer: &Signer, body: &str) -> String {
    signer.post("/", &[("content-type", "application/x-www-form-urlencoded")], body)
}

#[tokio::test]
async fn a_service_learns_who_signed_and_for_which_region() {
    let (router, _file) = router(&line("account=000000000042")).await;
    let answer = router.ask(ALICE.post("/", &[TARGET], "{}")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "/ 000000000042 eu-west-1 AKIDEXAMPLE alice {}"));
    let monitoring = Signer { service: "monitoring", ..ALICE };
    for path in
        ["/service/GraniteServiceVersion20100801/operation/ListMetrics", "/api/v1/query", "/api/v1/label/a/values"]
    {
        let answer = router.ask(monitoring.post(path, &[], "")).await;
        assert_eq!(answer.text(), format!("{path} 000000000042 eu-west-1 AKIDEXAMPLE alice "));
    }
    router.idle().await;
    router.counts("isotherm_requests_total", &["aws"], 4.0).await;
}

#[tokio::test]
async fn what_proves_nothing_is_told_in_the_services_form() {
    let (router, _file) = router(&line("")).await;
    let unsigned = post("/", "{}").replacen("host: router", "host: router\r\nx-amz-target: SageMaker.ListModels", 1);
    let answer = router.ask(unsigned).await;
    assert_eq!((answer.status, answer.header("x-amzn-errortype")), (403, Some("MissingAuthenticationTokenException")));
    assert_eq!(
        answer.text(),
        r#"{"__type":"MissingAuthenticationTokenException","message":"Missing Authentication Token"}"#
    );
    assert_eq!(answer.header("x-amzn-requestid"), answer.header("x-request-id"));
    let sts = Signer { service: "sts", secret: "another secret of 40 characters in length", ..ALICE };
    let answer = router.ask(form(&sts, "Action=GetCallerIdentity&Version=2011-06-15")).await;
    assert_eq!((answer.status, answer.header("content-type")), (403, Some("text/xml")));
    assert!(answer.text().contains("<Code>SignatureDoesNotMatch</Code>"), "{}", answer.text());
    let answer = router.ask(Signer { service: "monitoring", ..ALICE }.post("/", &[TARGET], "{}")).await;
    assert!(answer.text().contains("scoped to correct service: 'sagemaker'"), "{}", answer.text());
    let unsigned_target =
        ALICE.post("/", &[], "{}").replacen("host: router", "host: router\r\nx-amz-target: SageMaker.X", 1);
    let answer = router.ask(unsigned_target).await;
    assert!(answer.text().contains("'x-amz-target' must be a 'SignedHeader'"), "{}", answer.text());
    let bearer = format!("host: router\r\nx-amz-target: SageMaker.X\r\nauthorization: Bearer {}", ALICE.token(60));
    let answer = router.ask(post("/", "{}").replacen("host: router", &bearer, 1)).await;
    assert_eq!(answer.header("x-amzn-errortype"), Some("UnrecognizedClientException"));
    let large = format!("POST / HTTP/1.1\r\nhost: router\r\ncontent-length: {}\r\n\r\n", 7 << 20);
    assert_eq!(router.ask(large).await.status, 413);
}

#[tokio::test]
async fn a_key_for_some_endpoints_administers_nothing() {
    let (router, _file) = router(&line("endpoints=chat")).await;
    let answer = router.ask(ALICE.post("/", &[TARGET], "{}")).await;
    assert_eq!((answer.status, answer.header("x-amzn-errortype")), (403, Some("AccessDeniedException")));
    let message = "User: arn:aws:iam::123456789012:user/alice is not authorized to perform: sagemaker:CreateEndpoint on \
                   resource: *";
    assert!(answer.text().contains(message), "{}", answer.text());
    let who_am_i = form(&Signer { service: "sts", ..ALICE }, "Action=GetCallerIdentity&Version=2011-06-15");
    assert_eq!(router.ask(who_am_i).await.status, 200);
}

#[tokio::test]
async fn without_keys_every_caller_is_the_configured_account() {
    let (router, _) = router("").await;
    let stranger = Signer { access_key: "test", secret: "test", at: -100_000, ..ALICE };
    assert_eq!(router.ask(stranger.post("/", &[TARGET], "{}")).await.text(), "/ 123456789012 eu-west-1 test - {}");
    let unsigned = post("/", "{}").replacen("host: router", "host: router\r\nx-amz-target: SageMaker.X", 1);
    assert_eq!(router.ask(&unsigned).await.text(), "/ 123456789012 us-east-1 - - {}");
    let loaded = get("/?Action=DeleteAlarms&Version=2010-08-01&AlarmNames.member.1=a");
    assert_eq!(router.ask(loaded).await.status, 403, "a page's picture could have this address");
    assert_eq!(router.ask(get("/?Action=GetCallerIdentity&Version=2011-06-15")).await.status, 200);
    let from_a_page = unsigned.replacen("host: router", "host: router\r\norigin: http://evil.example", 1);
    let answer = router.ask(from_a_page).await;
    assert_eq!((answer.status, answer.header("x-amzn-errortype")), (403, Some("AccessDeniedException")));
}

#[tokio::test]
async fn whatever_else_is_signed_reaches_the_service_and_what_is_not_is_404() {
    let (router, _) = router("").await;
    let s3 = Signer { service: "s3", ..ALICE };
    assert_eq!(
        router.ask(s3.post("/bucket/key", &[], "x")).await.text(),
        "/bucket/key 123456789012 eu-west-1 AKIDEXAMPLE - x"
    );
    assert_eq!(router.ask(post("/bucket/key", "x")).await.status, 404);
    assert_eq!(router.ask(get("/api/v1/other")).await.status, 404);
    let origin = Origin::answering(&json(200, "{}")).await;
    let without = Router::before(&[&origin], "");
    for request in [ALICE.post("/", &[TARGET], "{}"), s3.post("/bucket/key", &[], "x"), get("/api/v1/query")] {
        assert_eq!(without.ask(request).await.status, 404);
    }
}

#[tokio::test]
async fn regions_that_are_not_served_are_refused() {
    let (_file, keys) = keys(&line(""));
    let origin = Origin::answering(&json(200, "{}")).await;
    let regions = "aws: { data_dir: unused, region: eu-west-1, regions: [eu-west-1, us-east-2] }\n";
    let router = Router::with_service(&origin, &format!("{keys}{regions}"), Arc::new(Echo));
    let ask = async |region| {
        let answer = router.ask(Signer { region, ..ALICE }.post("/", &[TARGET], "{}")).await;
        (answer.status, answer.text())
    };
    assert_eq!((ask("eu-west-1").await.0, ask("us-east-2").await.0), (200, 200));
    for region in ["us-east-1", "arn:aws:evil"] {
        let (status, text) = ask(region).await;
        let message = format!("Credential should be scoped to a valid region, not '{region}'.");
        assert!(status == 403 && text.contains(&message), "{text}");
    }
    let any = Router::with_service(&origin, &keys, Arc::new(Echo));
    assert_eq!(any.ask(Signer { region: "ap-south-1", ..ALICE }.post("/", &[TARGET], "{}")).await.status, 200);
    assert_eq!(any.ask(Signer { region: "not a region", ..ALICE }.post("/", &[TARGET], "{}")).await.status, 403);
}
