//! Tests of the operations.

use std::future::ready;

use futures_util::FutureExt;
use http::Request;
use isotherm_cloudwatch::Limits;
use isotherm_wire::aws::Caller;
use serde_json::{Value, json};

use super::*;
use crate::resource::{Capacity, Owner, Resource, Working};

const NOON: u64 = 1_795_953_600;

fn service(store: Option<Arc<Store>>) -> AutoScaling {
    let cloudwatch = CloudWatch::open(None, Limits::default()).expect("no store to read");
    AutoScaling::open(store, cloudwatch, Arc::new(AllButOne)).expect("a readable store")
}

/// Two of everything, except of the endpoint `none`.
struct AllButOne;

impl ScalableResources for AllButOne {
    fn capacity<'a>(&'a self, _: &'a Owner, resource: &'a Resource) -> Working<'a, Option<Capacity>> {
        let is_none = matches!(resource, Resource::Variant { endpoint, .. } if endpoint == "none");
        Box::pin(ready(Ok((!is_none).then_some(Capacity { desired: 2, running: 2, settled: true }))))
    }

    fn set_capacity<'a>(&'a self, _: &'a Owner, _: &'a Resource, _: u32) -> Working<'a, ()> {
        Box::pin(ready(Ok(())))
    }
}

fn ask(service: &AutoScaling, operation: &str, input: &Value) -> (u16, Value) {
    ask_as("123456789012", service, operation, input)
}

fn ask_as(account: &str, service: &AutoScaling, operation: &str, input: &Value) -> (u16, Value) {
    let target = format!("AnyScaleFrontendService.{operation}");
    let (head, ()) = Request::post("/").header("x-amz-target", target).body(()).expect("a head").into_parts();
    let caller = Caller { account: account.into(), region: "eu-west-1".into(), access_key: None, name: None };
    let request = AwsRequest { head, body: input.to_string().into(), caller };
    let response = service.answer(&request, NOON).now_or_never().expect("nothing to wait for");
    (response.status().as_u16(), whole(serde_json::from_slice(response.body()).expect("JSON")))
}

/// The same with `2.0` as `2`, so that it compares with what is written in tests.
fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(number) if number.fract() == 0.0 => json!(number as i64),
            _ => Value::Number(number),
        },
        Value::Array(values) => values.into_iter().map(whole).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, whole(value))).collect(),
        other => other,
    }
}

fn done(service: &AutoScaling, operation: &str, input: Value) -> Value {
    let (status, body) = ask(service, operation, &input);
    assert_eq!(status, 200, "{operation}: {body}");
    body
}

fn refused(service: &AutoScaling, operation: &str, input: Value) -> String {
    let (status, body) = ask(service, operation, &input);
    assert_eq!(status, 400, "{operation} {input}");
    format!("{}: {}", body["__type"].as_str().unwrap_or_default(), body["Message"].as_str().unwrap_or_default())
}

#[test]
fn an_account_has_a_bound_of_targets_and_takes_nothing_from_another() {
    let service = service(None);
    let target = |n: usize| {
        let mut target = about(json!({"MinCapacity": 1, "MaxCapacity": 4}));
        target["ResourceId"] = json!(format!("endpoint/e{n}/variant/blue"));
        target
    };
    for n in 0..1_000 {
        done(&service, "RegisterScalableTarget", target(n));
    }
    let refused = refused(&service, "RegisterScalableTarget", target(1_000));
    assert_eq!(refused, "LimitExceededException: There are 1000 scalable targets already, which is the most.");
    done(&service, "RegisterScalableTarget", target(999));
    assert_eq!(ask_as("999999999999", &service, "RegisterScalableTarget", &target(1_000)).0, 200);
}

/// The resource's members and these.
fn about(more: Value) -> Value {
    let mut all = json!({"ServiceNamespace": "sagemaker", "ResourceId": "endpoint/chat/variant/blue",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount"});
    if let (Some(all), Some(more)) = (all.as_object_mut(), more.as_object()) {
        all.extend(more.clone());
    }
    all
}

fn tracking(more: Value) -> Value {
    let mut configuration = json!({"TargetValue": 5.0, "PredefinedMetricSpecification":
        {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}});
    if let (Some(all), Some(more)) = (configuration.as_object_mut(), more.as_object()) {
        all.extend(more.clone());
    }
    about(json!({"PolicyName": "p", "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": configuration}))
}

fn steps(steps: Value) -> Value {
    about(json!({"PolicyName": "s", "PolicyType": "StepScaling",
        "StepScalingPolicyConfiguration": {"AdjustmentType": "ChangeInCapacity", "StepAdjustments": steps}}))
}

#[test]
fn a_target_is_registered_changed_and_deregistered() {
    let service = service(None);
    let made = done(&service, "RegisterScalableTarget", about(json!({"MinCapacity": 1, "MaxCapacity": 4})));
    let arn = made["ScalableTargetARN"].as_str().expect("an ARN").to_owned();
    assert!(arn.starts_with("arn:aws:application-autoscaling:eu-west-1:123456789012:scalable-target/"), "{arn}");
    let changed = done(&service, "RegisterScalableTarget", about(json!({"MaxCapacity": 8})));
    assert_eq!(changed["ScalableTargetARN"], arn.as_str());
    let described = done(&service, "DescribeScalableTargets", json!({"ServiceNamespace": "sagemaker"}));
    let target = &described["ScalableTargets"][0];
    assert_eq!((&target["MinCapacity"], &target["MaxCapacity"]), (&json!(1), &json!(8)));
    assert_eq!((&target["ResourceId"], &target["CreationTime"]), (&json!("endpoint/chat/variant/blue"), &json!(NOON)));
    assert!(target["RoleARN"].as_str().is_some_and(|role| role.contains("AWSServiceRoleForApplicationAutoScaling")));
    assert_eq!(target["SuspendedState"]["DynamicScalingInSuspended"], false);
    done(&service, "DeregisterScalableTarget", about(json!({})));
    assert_eq!(
        refused(&service, "DeregisterScalableTarget", about(json!({}))),
        "ObjectNotFoundException: No scalable target found for service namespace: sagemaker, resource ID: \
         endpoint/chat/variant/blue, scalable dimension: sagemaker:variant:DesiredInstanceCount"
    );
}

#[test]
fn policies_are_put_described_and_deleted() {
    let service = service(None);
    assert!(refused(&service, "PutScalingPolicy", tracking(json!({}))).starts_with(
        "ObjectNotFoundException: No scalable target registered for service namespace: sagemaker, resource ID: endpoint/"
    ));
    done(&service, "RegisterScalableTarget", about(json!({"MinCapacity": 1, "MaxCapacity": 4})));
    let put = done(&service, "PutScalingPolicy", tracking(json!({"ScaleInCooldown": 60})));
    let arn = put["PolicyARN"].as_str().expect("an ARN").to_owned();
    assert!(arn.ends_with(":resource/sagemaker/endpoint/chat/variant/blue:policyName/p"), "{arn}");
    let again = done(&service, "PutScalingPolicy", tracking(json!({"DisableScaleIn": true})));
    assert_eq!(again["PolicyARN"], arn.as_str());
    let steps = steps(json!([{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}]));
    done(&service, "PutScalingPolicy", steps);
    let described = done(&service, "DescribeScalingPolicies", json!({"ServiceNamespace": "sagemaker"}));
    let policies = described["ScalingPolicies"].as_array().expect("a list").clone();
    assert_eq!(policies.len(), 2);
    assert_eq!(
        policies[0]["TargetTrackingScalingPolicyConfiguration"],
        json!({"TargetValue": 5,
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
        "ScaleInCooldown": 300, "ScaleOutCooldown": 300, "DisableScaleIn": true})
    );
    assert_eq!(
        policies[1]["StepScalingPolicyConfiguration"],
        json!({"AdjustmentType": "ChangeInCapacity",
        "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}], "Cooldown": 300})
    );
    let one = json!({"ServiceNamespace": "sagemaker", "PolicyNames": ["s"]});
    assert_eq!(done(&service, "DescribeScalingPolicies", one)["ScalingPolicies"].as_array().map(Vec::len), Some(1));
    done(&service, "DeleteScalingPolicy", about(json!({"PolicyName": "s"})));
    assert!(refused(&service, "DeleteScalingPolicy", about(json!({"PolicyName": "s"}))).ends_with("policy name: s"));
}

#[test]
fn target_tracking_has_alarms_to_look_at() {
    let service = service(None);
    let caller = Caller { account: "123456789012".into(), region: "eu-west-1".into(), access_key: None, name: None };
    let alarms = || {
        let target = "GraniteServiceVersion20100801.DescribeAlarms";
        let (head, ()) = Request::post("/").header("x-amz-target", target).body(()).expect("a head").into_parts();
        let request = AwsRequest { head, body: Bytes::new(), caller: caller.clone() };
        let answer: Value = serde_json::from_slice(service.cloudwatch().answer(&request, NOON).body()).expect("JSON");
        let alarms = whole(answer["MetricAlarms"].clone());
        let summary = |alarm: &Value| {
            let name = alarm["AlarmName"].as_str().unwrap_or_default().to_owned();
            (name, alarm["Threshold"].as_f64(), alarm["EvaluationPeriods"].as_u64())
        };
        alarms.as_array().expect("a list").iter().map(summary).collect::<Vec<_>>()
    };
    done(&service, "RegisterScalableTarget", about(json!({"MinCapacity": 1, "MaxCapacity": 4})));
    let put = done(&service, "PutScalingPolicy", tracking(json!({"TargetValue": 70})));
    let before = alarms();
    assert!(before[0].0.starts_with("TargetTracking-endpoint/chat/variant/blue-AlarmHigh-"), "{before:?}");
    assert_eq!((before[0].1, before[0].2), (Some(70.0), Some(3)));
    assert_eq!((before[1].1, before[1].2), (Some(63.0), Some(15)));
    assert_eq!(put["Alarms"].as_array().map(Vec::len), Some(2));
    done(&service, "PutScalingPolicy", tracking(json!({"TargetValue": 50, "DisableScaleIn": true})));
    assert_eq!(alarms(), [(before[0].0.clone(), Some(50.0), Some(3))], "the same alarm, and no other");
    done(&service, "DeregisterScalableTarget", about(json!({})));
    assert_eq!(alarms(), []);
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let service = service(None);
    done(&service, "RegisterScalableTarget", about(json!({"MinCapacity": 1, "MaxCapacity": 4})));
    let predefined = |word: &str| tracking(json!({"PredefinedMetricSpecification": {"PredefinedMetricType": word}}));
    for (operation, input, expected) in [
        ("RegisterScalableTarget", json!({}), "3 validation errors detected: Value null at 'serviceNamespace'"),
        ("RegisterScalableTarget", about(json!({"MinCapacity": 5})), "Maximum capacity cannot be less than minimum"),
        ("RegisterScalableTarget", about(json!({"MinCapacity": -1})), "greater than or equal to 0"),
        ("RegisterScalableTarget", about(json!({"ServiceNamespace": "mars"})), "enum value set: [ecs, elasticmap"),
        (
            "RegisterScalableTarget",
            about(json!({"ServiceNamespace": "ecs"})),
            "Unsupported service namespace, resource",
        ),
        ("RegisterScalableTarget", about(json!({"ResourceId": "endpoint/chat"})), "Unsupported service namespace"),
        (
            "RegisterScalableTarget",
            about(json!({"ResourceId": "endpoint/new/variant/a", "MinCapacity": 1})),
            "MinCapacity and MaxCapacity are required",
        ),
        (
            "RegisterScalableTarget",
            about(json!({"ResourceId": "endpoint/none/variant/a", "MinCapacity": 1, "MaxCapacity": 1})),
            "There is nothing to scale for service namespace: sagemaker, resource ID: endpoint/none/variant/a",
        ),
        ("RegisterScalableTarget", about(json!({"Tags": {"a": "b"}})), "use TagResource"),
        ("PutScalingPolicy", tracking(json!({"TargetValue": 0})), "TargetValue must be greater than 0"),
        ("PutScalingPolicy", predefined("ALBRequestCountPerTarget"), "use SageMakerVariantInvocationsPerInstance or"),
        (
            "PutScalingPolicy",
            predefined("SageMakerInferenceComponentInvocationsPerCopy"),
            "does not scale sagemaker:var",
        ),
        ("PutScalingPolicy", tracking(json!({"CustomizedMetricSpecification": {}})), "Exactly one of Predefined"),
        ("PutScalingPolicy", tracking(json!({"ScaleInCooldown": -1})), "scaleInCooldown' failed"),
        ("PutScalingPolicy", about(json!({"PolicyName": "p"})), "A policy of type StepScaling needs StepScalingPolicy"),
        ("PutScalingPolicy", about(json!({"PolicyName": "p", "PolicyType": "PredictiveScaling"})), "is not supported"),
        ("PutScalingPolicy", steps(json!([])), "length greater than or equal to 1"),
        (
            "PutScalingPolicy",
            steps(json!([{"MetricIntervalLowerBound": 5, "MetricIntervalUpperBound": 5, "ScalingAdjustment": 1}])),
            "must be less than its MetricIntervalUpperBound",
        ),
        (
            "PutScalingPolicy",
            steps(json!([{"MetricIntervalUpperBound": 5, "ScalingAdjustment": 1},
                {"MetricIntervalLowerBound": 4, "ScalingAdjustment": 1}])),
            "neither overlap nor leave a gap",
        ),
        ("DescribeScalableTargets", json!({"ServiceNamespace": "sagemaker", "NextToken": "x"}), "InvalidNextToken"),
        ("PutScheduledAction", json!({}), "UnknownOperationException"),
    ] {
        let message = refused(&service, operation, input);
        assert!(message.contains(expected), "{operation}: {message}");
    }
    let kinds = done(&service, "PutScalingPolicy", tracking(json!({})));
    assert!(kinds["PolicyARN"].is_string());
    let mut other = steps(json!([{"ScalingAdjustment": 1}]));
    other["PolicyName"] = json!("p");
    assert!(refused(&service, "PutScalingPolicy", other).contains("different policy type"));
}

#[test]
fn targets_have_tags() {
    let service = service(None);
    let tags = json!({"MinCapacity": 1, "MaxCapacity": 4, "Tags": {"team": "search"}});
    let arn = done(&service, "RegisterScalableTarget", about(tags))["ScalableTargetARN"].clone();
    done(&service, "TagResource", json!({"ResourceARN": arn, "Tags": {"stage": "prod", "team": "chat"}}));
    done(&service, "UntagResource", json!({"ResourceARN": arn, "TagKeys": ["stage"]}));
    assert_eq!(done(&service, "ListTagsForResource", json!({"ResourceARN": arn}))["Tags"], json!({"team": "chat"}));
    assert!(refused(&service, "ListTagsForResource", json!({"ResourceARN": "arn:x"})).starts_with("ResourceNotFound"));
}

#[test]
fn listings_come_in_pages() {
    let service = service(None);
    for n in 0..3 {
        let id = format!("inference-component/c{n}");
        let target = json!({"ServiceNamespace": "sagemaker", "ResourceId": id, "MinCapacity": 0, "MaxCapacity": 1,
            "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount"});
        done(&service, "RegisterScalableTarget", target);
    }
    let first = done(&service, "DescribeScalableTargets", json!({"ServiceNamespace": "sagemaker", "MaxResults": 2}));
    assert_eq!(first["ScalableTargets"].as_array().map(Vec::len), Some(2));
    let next = json!({"ServiceNamespace": "sagemaker", "MaxResults": 2, "NextToken": first["NextToken"]});
    let second = done(&service, "DescribeScalableTargets", next);
    assert_eq!(second["ScalableTargets"][0]["ResourceId"], "inference-component/c2");
    assert_eq!(second["NextToken"], Value::Null);
    let elsewhere = done(&service, "DescribeScalableTargets", json!({"ServiceNamespace": "ecs"}));
    assert_eq!(elsewhere["ScalableTargets"], json!([]));
}

#[test]
fn no_value_of_any_member_breaks_anything() {
    let service = service(None);
    let members = "ServiceNamespace ResourceId ScalableDimension MinCapacity MaxCapacity RoleARN SuspendedState Tags ResourceIds \
                   MaxResults NextToken PolicyName PolicyNames PolicyType TargetTrackingScalingPolicyConfiguration \
                   StepScalingPolicyConfiguration ResourceARN TagKeys";
    let nested = json!({"TargetValue": 1e300, "PredefinedMetricSpecification": [], "ScaleInCooldown": 1e300, "StepAdjustments":
        [{"ScalingAdjustment": 1e300}], "AdjustmentType": 7, "Cooldown": -1, "DynamicScalingInSuspended": "maybe"});
    let odd = json!([
        "",
        "x".repeat(5000),
        -1,
        1.5,
        1e300,
        "NaN",
        [],
        {},
        [[]],
        [{}],
        nested,
        [nested],
        ["a", 1],
        true,
        u64::MAX
    ]);
    let sound =
        about(json!({"MinCapacity": 1, "MaxCapacity": 2, "PolicyName": "p", "PolicyType": "TargetTrackingScaling"}));
    for (operation, _) in OPERATIONS {
        for member in members.split(' ') {
            for value in odd.as_array().expect("a list") {
                let mut input = sound.clone();
                input[member] = value.clone();
                let (status, answer) = ask(&service, operation, &input);
                assert!(matches!(status, 200 | 400), "{operation} {member}={value}: {status} {answer}");
            }
        }
    }
}

#[test]
fn everything_outlives_the_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let open = || service(Some(Arc::new(Store::open(directory.path()).expect("a store"))));
    let before = open();
    done(&before, "RegisterScalableTarget", about(json!({"MinCapacity": 1, "MaxCapacity": 4})));
    done(&before, "PutScalingPolicy", tracking(json!({})));
    done(&before, "PutScalingPolicy", steps(json!([{"ScalingAdjustment": 1}])));
    done(&before, "DeleteScalingPolicy", about(json!({"PolicyName": "s"})));
    let all = json!({"ServiceNamespace": "sagemaker"});
    let (targets, policies) = ("DescribeScalableTargets", "DescribeScalingPolicies");
    let expected = (done(&before, targets, all.clone()), done(&before, policies, all.clone()));
    drop(before);
    let after = open();
    assert_eq!((done(&after, targets, all.clone()), done(&after, policies, all)), expected);
}
