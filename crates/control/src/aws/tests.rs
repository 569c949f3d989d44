//! Tests of the front door, with services that say their names.

use http::Request;
use isotherm_wire::aws::Caller;

use super::*;

/// A service that answers with its name, or panics.
struct Named(&'static str);

impl AwsService for Named {
    fn call(&self, request: AwsRequest) -> Answering {
        let name = self.0;
        assert!(!request.body.is_empty(), "a service that fails");
        Box::pin(async move { Response::new(Bytes::from(name)) })
    }
}

fn front_door() -> FrontDoor {
    let services = Services {
        sagemaker: Arc::new(Named("sagemaker")),
        cloudwatch: Arc::new(Named("cloudwatch")),
        autoscaling: Arc::new(Named("autoscaling")),
    };
    FrontDoor::new(services, Handle::current())
}

fn caller(name: Option<&str>) -> Caller {
    Caller {
        account: "123456789012".into(),
        region: "us-east-1".into(),
        access_key: Some("AKIDEXAMPLE".into()),
        name: name.map(str::to_owned),
    }
}

async fn ask(target: &str, headers: &[(&str, &str)], body: &str, caller: Caller) -> (u16, http::HeaderMap, String) {
    let request = headers.iter().fold(Request::post(target), |request, (name, value)| request.header(*name, *value));
    let head = request.body(()).unwrap().into_parts().0;
    let body = Bytes::copy_from_slice(body.as_bytes());
    let (head, body) = front_door().call(AwsRequest { head, body, caller }).await.into_parts();
    (head.status.as_u16(), head.headers, String::from_utf8(body.to_vec()).unwrap())
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded; charset=utf-8");

#[tokio::test]
async fn every_service_gets_its_requests() {
    for (target, header, expected) in [
        ("/", ("x-amz-target", "SageMaker.ListModels"), "sagemaker"),
        ("/", ("x-amz-target", "GraniteServiceVersion20100801.ListMetrics"), "cloudwatch"),
        ("/", ("x-amz-target", "AnyScaleFrontendService.PutScalingPolicy"), "autoscaling"),
        ("/service/GraniteServiceVersion20100801/operation/ListMetrics", FORM, "cloudwatch"),
        ("/api/v1/query?query=up", FORM, "cloudwatch"),
    ] {
        let (status, headers, body) = ask(target, &[header], "{}", caller(None)).await;
        assert_eq!((status, body.as_str()), (200, expected), "{target} {header:?}");
        assert_eq!(headers["x-amzn-requestid"].len(), 36);
    }
    let form = "Action=ListMetrics&Version=2010-08-01";
    assert_eq!(ask("/", &[FORM], form, caller(None)).await.2, "cloudwatch");
}

#[tokio::test]
async fn whoever_asks_is_told_who_they_are() {
    let form = "Action=GetCallerIdentity&Version=2011-06-15";
    let (status, headers, body) = ask("/", &[FORM], form, caller(Some("al<ice"))).await;
    assert_eq!((status, headers["content-type"].to_str().unwrap()), (200, "text/xml"));
    for part in [
        "<Account>123456789012</Account>",
        "<Arn>arn:aws:iam::123456789012:user/al&lt;ice</Arn>",
        "<UserId>AKIDEXAMPLE</UserId>",
        &format!("<RequestId>{}</RequestId>", headers["x-amzn-requestid"].to_str().unwrap()),
    ] {
        assert!(body.contains(part), "{part} in {body}");
    }
    let (_, _, body) = ask("/", &[FORM], form, caller(None)).await;
    assert!(body.contains("<Arn>arn:aws:iam::123456789012:root</Arn>"), "{body}");
    assert!(body.contains("<UserId>123456789012</UserId>"), "{body}");
}

#[tokio::test]
async fn what_is_not_here_is_said_in_the_clients_form() {
    let (status, headers, body) = ask("/", &[("x-amz-target", "Logs_20140328.PutLogEvents")], "{}", caller(None)).await;
    assert_eq!((status, headers["x-amzn-errortype"].to_str().unwrap()), (400, "UnknownOperationException"));
    assert!(body.contains("but not \\\"Logs_20140328\\\"") && body.contains("AWS_ENDPOINT_URL_SAGEMAKER"), "{body}");
    let (status, _, body) = ask("/", &[FORM], "Action=AssumeRole&Version=2011-06-15", caller(None)).await;
    assert_eq!(status, 400);
    assert!(body.contains("<Code>InvalidAction</Code>") && body.contains("AssumeRole"), "{body}");
    let signed = format!(
        "AWS4-HMAC-SHA256 Credential=A/20261129/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature={}",
        "0".repeat(64)
    );
    let headers = [("host", "a"), ("x-amz-date", "20261129T120000Z"), ("authorization", signed.as_str())];
    let (status, _, body) = ask("/bucket", &headers, "", caller(None)).await;
    assert_eq!(status, 501);
    assert!(body.starts_with("<Error><Code>NotImplemented</Code><Message>Isotherm serves"), "{body}");
}

#[tokio::test]
async fn a_service_that_fails_fails_alone() {
    let (status, headers, body) = ask("/", &[("x-amz-target", "SageMaker.ListModels")], "", caller(None)).await;
    assert_eq!((status, headers["x-amzn-errortype"].to_str().unwrap()), (500, "InternalFailure"));
    assert!(body.contains("the router failed on this request"), "{body}");
}
