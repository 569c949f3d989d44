//! Tests of the three protocols, on requests as clients send them.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::Request;
use isotherm_wire::aws::Caller;

use super::*;

fn request(path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> AwsRequest {
    let mut builder = Request::post(path);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    let (head, ()) = builder.body(()).expect("a valid head").into_parts();
    let account = "123456789012".to_owned();
    let caller = Caller { account, region: "eu-west-1".to_owned(), access_key: None, name: None };
    AwsRequest { head, body: body.into(), caller }
}

fn read(request: &AwsRequest) -> (Protocol, Result<Asked, Refusal>) {
    let protocol = Protocol::of(request);
    (protocol, protocol.read(request))
}

fn dimension() -> Document {
    Document::structure([("Name", "EndpointName".into()), ("Value", "a & b".into())])
}

#[test]
fn one_request_reads_the_same_in_every_protocol() {
    let form = "Action=ListMetrics&Version=2010-08-01&Namespace=AWS%2FSageMaker&Dimensions.member.1.Name=EndpointName\
                &Dimensions.member.1.Value=a+%26+b";
    let json = r#"{"Dimensions": [{"Name": "EndpointName", "Value": "a & b"}], "Namespace": "AWS/SageMaker"}"#;
    let expected =
        Document::structure([("Dimensions", Document::list([dimension()])), ("Namespace", "AWS/SageMaker".into())]);
    let target = [("x-amz-target", "GraniteServiceVersion20100801.ListMetrics")];
    let cbor_path = "/service/GraniteServiceVersion20100801/operation/ListMetrics";
    for (protocol, sent) in [
        (Protocol::Query, request("/", &[("content-type", "application/x-www-form-urlencoded")], form)),
        (Protocol::Json, request("/", &target, json)),
        (Protocol::Cbor, request(cbor_path, &[("smithy-protocol", "rpc-v2-cbor")], cbor::written(&expected))),
    ] {
        let (found, asked) = read(&sent);
        let input = expected.clone();
        assert_eq!((found, asked), (protocol, Ok(Asked { operation: "ListMetrics".to_owned(), input })));
    }
}

#[test]
fn a_compressed_body_is_read_and_a_bomb_is_not() {
    let compressed = |plain: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain).expect("into memory");
        encoder.finish().expect("into memory")
    };
    let headers = [("x-amz-target", "GraniteServiceVersion20100801.PutMetricData"), ("content-encoding", "gzip")];
    let (_, asked) = read(&request("/", &headers, compressed(br#"{"Namespace":"Shop"}"#)));
    assert_eq!(asked.expect("readable").input.member("Namespace"), &Document::from("Shop"));
    let bomb = vec![b' '; LONGEST_BODY as usize + 1];
    let (_, asked) = read(&request("/", &headers, compressed(&bomb)));
    assert!(asked.expect_err("too long").message.contains("longer than 10485760 bytes"));
    let (_, asked) = read(&request("/", &headers, "plain"));
    assert!(asked.expect_err("no gzip").message.starts_with("The body is no gzip"));
}

#[test]
fn bad_bodies_are_refused_in_their_protocol() {
    let target = [("x-amz-target", "GraniteServiceVersion20100801.ListMetrics")];
    let deep = "[".repeat(100_000);
    let deep_name = format!("Action=ListMetrics&{}=1", "a.".repeat(50_000));
    let cbor_path = "/service/GraniteServiceVersion20100801/operation/ListMetrics";
    for sent in [
        request("/", &target, "{"),
        request("/", &target, deep),
        request(cbor_path, &[], vec![0x9f; 100_000]),
        request(cbor_path, &[], vec![0xff]),
        request("/", &[], "Action=%ff"),
        request("/", &[], deep_name),
    ] {
        let (_, asked) = read(&sent);
        assert_eq!(asked.expect_err("refused").code, "MalformedInput");
    }
}

#[test]
fn refusals_have_each_protocols_form() {
    let refusal = || Refusal::value("<no>");
    let json = Protocol::Json.answer("ListMetrics", Err(refusal()), "id-1");
    assert_eq!(json.status(), 400);
    assert_eq!(json.headers()["x-amzn-query-error"], "InvalidParameterValue;Sender");
    assert_eq!(json.headers()["x-amzn-requestid"], "id-1");
    assert_eq!(json.body(), r#"{"__type":"com.amazonaws.cloudwatch#InvalidParameterValueException","message":"<no>"}"#);
    let cbor = Protocol::Cbor.answer("ListMetrics", Err(refusal()), "id-1");
    assert_eq!(
        (&cbor.headers()["smithy-protocol"], &cbor.headers()["content-type"]),
        (&HeaderValue::from_static("rpc-v2-cbor"), &HeaderValue::from_static("application/cbor"))
    );
    let body = cbor::read(cbor.body()).expect("cbor");
    assert_eq!(body.member("message"), &Document::from("<no>"));
    let xml = Protocol::Query.answer("ListMetrics", Err(refusal()), "id-1");
    assert_eq!(
        xml.body(),
        "<ErrorResponse xmlns=\"http://monitoring.amazonaws.com/doc/2010-08-01/\"><Error><Type>Sender</Type>\
         <Code>InvalidParameterValue</Code><Message>&lt;no&gt;</Message></Error><RequestId>id-1</RequestId>\
         </ErrorResponse>"
    );
}

#[test]
fn outputs_have_each_protocols_form() {
    let point = Document::structure([
        ("Timestamp", Document::timestamp(1_795_953_600)),
        ("Sum", 2.0.into()),
        ("ExtendedStatistics", Document::Map(vec![("p99".to_owned(), 1.5.into())])),
    ]);
    let output = Document::structure([("Label", "A\u{1}".into()), ("Datapoints", Document::list([point]))]);
    let json = Protocol::Json.answer("GetMetricStatistics", Ok(output.clone()), "id");
    let value: serde_json::Value = serde_json::from_slice(json.body()).expect("json");
    assert_eq!(value["Datapoints"][0]["Timestamp"], 1_795_953_600);
    assert_eq!(value["Datapoints"][0]["ExtendedStatistics"]["p99"], 1.5);
    let cbor = Protocol::Cbor.answer("GetMetricStatistics", Ok(output.clone()), "id");
    let read = cbor::read(cbor.body()).expect("cbor");
    let first = &read.member("Datapoints").as_list().expect("a list")[0];
    assert_eq!(first.member("Timestamp"), &Document::Timestamp(1_795_953_600.0));
    let xml = Protocol::Query.answer("GetMetricStatistics", Ok(output), "id");
    let text = String::from_utf8(xml.body().to_vec()).expect("text");
    assert!(text.contains("<Datapoints><member><Timestamp>2026-11-29T12:00:00Z</Timestamp><Sum>2</Sum>"), "{text}");
    assert!(text.contains("<ExtendedStatistics><entry><key>p99</key><value>1.5</value></entry>"), "{text}");
    assert!(text.contains("<Label>A\u{fffd}</Label>"), "{text}");
}

#[test]
fn an_operation_without_output_answers_with_as_little_as_its_protocol_allows() {
    let body = |protocol: Protocol| protocol.answer("DeleteAlarms", Ok(Document::Null), "id").into_body();
    assert_eq!(body(Protocol::Json), "");
    assert_eq!(body(Protocol::Cbor), vec![0xa0]);
    assert_eq!(
        body(Protocol::Query),
        "<DeleteAlarmsResponse xmlns=\"http://monitoring.amazonaws.com/doc/2010-08-01/\"><ResponseMetadata>\
         <RequestId>id</RequestId></ResponseMetadata></DeleteAlarmsResponse>"
    );
}
