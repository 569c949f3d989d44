//! Stories of scaling, over resources that are numbers.

use std::collections::HashMap;
use std::sync::Arc;

use http::Request;
use isotherm_cloudwatch::{CloudWatch, Dimension, Limits, Metric, Resolution, Summary, Unit};
use isotherm_wire::aws::{AwsRequest, Caller};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::resource::{Owner, Resource, ScalableResources, Working};

const ACCOUNT: &str = "123456789012";
const NOON: u64 = 1_795_953_600;

/// Capacities by resource.
#[derive(Default)]
struct Numbers(Mutex<HashMap<Resource, Capacity>>);

impl ScalableResources for Numbers {
    fn capacity<'a>(&'a self, _: &'a Owner, resource: &'a Resource) -> Working<'a, Option<Capacity>> {
        Box::pin(async move { Ok(self.0.lock().get(resource).copied()) })
    }

    fn set_capacity<'a>(&'a self, _: &'a Owner, resource: &'a Resource, desired: u32) -> Working<'a, ()> {
        Box::pin(async move {
            if desired > 90 {
                return Err("no machines left".to_owned());
            }
            self.0.lock().insert(resource.clone(), Capacity { desired, running: desired, settled: true });
            Ok(())
        })
    }
}

struct Story {
    cloudwatch: CloudWatch,
    scaling: AutoScaling,
    numbers: Arc<Numbers>,
    controller: Controller,
}

fn variant() -> Resource {
    Resource::Variant { endpoint: "chat".to_owned(), variant: "blue".to_owned() }
}

impl Story {
    /// A variant with so many instances, scalable between 1 and 10.
    async fn begin(instances: u32) -> Story {
        let cloudwatch = CloudWatch::open(None, Limits::default()).expect("no store to read");
        let numbers = Arc::new(Numbers::default());
        let resources = Arc::clone(&numbers) as Arc<dyn ScalableResources>;
        let scaling = AutoScaling::open(None, cloudwatch.clone(), resources).expect("no store to read");
        let mut controller = Controller::new(scaling.clone(), Pace::default());
        controller.started = NOON;
        let story = Story { cloudwatch, scaling, numbers, controller };
        story.have(instances);
        story.ask("RegisterScalableTarget", json!({"MinCapacity": 1, "MaxCapacity": 10})).await;
        story
    }

    fn have(&self, instances: u32) {
        let capacity = Capacity { desired: instances, running: instances, settled: true };
        self.numbers.0.lock().insert(variant(), capacity);
    }

    fn instances(&self) -> Option<u32> {
        self.numbers.0.lock().get(&variant()).map(|capacity| capacity.desired)
    }

    async fn ask(&self, operation: &str, mut input: Value) -> Value {
        input["ServiceNamespace"] = json!("sagemaker");
        input["ResourceId"] = json!("endpoint/chat/variant/blue");
        input["ScalableDimension"] = json!("sagemaker:variant:DesiredInstanceCount");
        let target = format!("AnyScaleFrontendService.{operation}");
        let (head, ()) = Request::post("/").header("x-amz-target", target).body(()).expect("a head").into_parts();
        let caller = Caller { account: ACCOUNT.into(), region: "eu-west-1".into(), access_key: None, name: None };
        let request = AwsRequest { head, body: input.to_string().into(), caller };
        let response = self.scaling.answer(&request, NOON).await;
        let body: Value = serde_json::from_slice(response.body()).expect("JSON");
        assert_eq!(response.status(), 200, "{operation}: {body}");
        body
    }

    async fn track(&self, metric: &str, target: f64) {
        let configuration =
            json!({"TargetValue": target, "PredefinedMetricSpecification": {"PredefinedMetricType": metric}});
        let policy = json!({"PolicyName": metric, "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": configuration});
        self.ask("PutScalingPolicy", policy).await;
    }

    fn measure(&self, name: &str, time: u64, value: f64) {
        let dimensions = vec![Dimension::new("EndpointName", "chat"), Dimension::new("VariantName", "blue")];
        let metric = Metric::new(ACCOUNT, "AWS/SageMaker", name, dimensions);
        let mut metrics = self.cloudwatch.metrics();
        metrics.record(&metric, Unit::Count, Resolution::High, time, &Summary::of(value)).expect("room");
    }

    /// A steady load on every instance together, for so long, looked at every ten seconds.
    async fn load(&self, requests: f64, from: u64, seconds: u64) {
        for time in (from..from + seconds).step_by(10) {
            let instances = self.instances().map_or(1.0, f64::from);
            self.measure("ConcurrentRequestsPerModel", time, requests / instances);
            self.controller.round(time + 10).await;
        }
    }
}

#[tokio::test]
async fn capacity_follows_the_load_out_and_in() {
    let story = Story::begin(2).await;
    story.track("SageMakerVariantConcurrentRequestsPerModelHighResolution", 5.0).await;
    story.load(40.0, NOON, 20).await;
    assert_eq!(story.instances(), Some(2), "two periods are too few");
    story.load(40.0, NOON + 20, 10).await;
    assert_eq!(story.instances(), Some(8), "40 requests at 5 each, at once");
    story.load(40.0, NOON + 30, 1200).await;
    assert_eq!(story.instances(), Some(8), "and it stays");
    story.load(12.0, NOON + 1230, 890).await;
    assert_eq!(story.instances(), Some(8), "not yet");
    story.load(12.0, NOON + 2120, 300).await;
    assert_eq!(story.instances(), Some(7), "one at a time");
    story.load(12.0, NOON + 2420, 3600).await;
    assert_eq!(story.instances(), Some(3), "12 requests at 5 each, at 90 % of that");
    let activities = story.ask("DescribeScalingActivities", json!({})).await;
    let first = activities["ScalingActivities"].as_array().and_then(|all| all.last()).expect("activities").clone();
    assert_eq!(first["Description"], "Setting desired instance count to 8.");
    assert_eq!(first["StatusCode"], "Successful");
    assert!(first["Cause"].as_str().is_some_and(|cause| cause.ends_with("lately it was 20, at a capacity of 2")));
}

#[tokio::test]
async fn invocations_are_counted_by_the_minute_and_none_are_no_load() {
    let story = Story::begin(2).await;
    story.track("SageMakerVariantInvocationsPerInstance", 100.0).await;
    for minute in 0..3 {
        for second in [5, 25, 45] {
            story.measure("InvocationsPerInstance", NOON + minute * 60 + second, 80.0);
        }
    }
    story.controller.round(NOON + 170).await;
    assert_eq!(story.instances(), Some(2), "the third minute is not over");
    story.controller.round(NOON + 180).await;
    assert_eq!(story.instances(), Some(5), "2 instances at 240 per minute each");
    story.controller.round(NOON + 180 + 899).await;
    assert_eq!(story.instances(), Some(5), "a quarter of an hour is not over");
    story.controller.round(NOON + 240 + 900).await;
    assert_eq!(story.instances(), Some(4));
}

#[tokio::test]
async fn a_new_process_waits_until_it_has_seen_enough() {
    let mut story = Story::begin(4).await;
    story.track("SageMakerVariantInvocationsPerInstance", 100.0).await;
    story.controller.started = NOON + 5000;
    story.controller.round(NOON + 5600).await;
    assert_eq!(story.instances(), Some(4), "no values do not mean no requests yet");
    story.controller.round(NOON + 5960).await;
    assert_eq!(story.instances(), Some(3));
}

#[tokio::test]
async fn bounds_are_kept_and_the_resource_must_be_at_rest() {
    let story = Story::begin(2).await;
    story.ask("RegisterScalableTarget", json!({"MinCapacity": 4})).await;
    let resting = Capacity { desired: 2, running: 2, settled: false };
    story.numbers.0.lock().insert(variant(), resting);
    story.controller.round(NOON).await;
    assert_eq!(story.instances(), Some(2), "an update is under way");
    story.have(2);
    story.controller.round(NOON + 10).await;
    assert_eq!(story.instances(), Some(4));
    story.ask("RegisterScalableTarget", json!({"MinCapacity": 1, "MaxCapacity": 3})).await;
    story.controller.round(NOON + 20).await;
    assert_eq!(story.instances(), Some(3));
}

#[tokio::test]
async fn a_target_whose_resource_is_gone_is_deregistered() {
    let story = Story::begin(2).await;
    story.controller.round(NOON).await;
    assert_eq!(
        story.ask("DescribeScalableTargets", json!({})).await["ScalableTargets"].as_array().map(Vec::len),
        Some(1)
    );
    story.numbers.0.lock().clear();
    story.controller.round(NOON + 10).await;
    assert_eq!(story.ask("DescribeScalableTargets", json!({})).await["ScalableTargets"], json!([]));
}

#[tokio::test]
async fn a_change_that_cannot_be_is_told() {
    let story = Story::begin(2).await;
    story.ask("RegisterScalableTarget", json!({"MinCapacity": 95, "MaxCapacity": 99})).await;
    story.controller.round(NOON).await;
    let activities = story.ask("DescribeScalingActivities", json!({})).await;
    let failed = &activities["ScalingActivities"][0];
    assert_eq!(failed["StatusCode"], "Failed");
    assert_eq!(failed["StatusMessage"], "Failed to set desired instance count to 95: no machines left");
    assert_eq!(failed["Cause"], "minimum capacity was set to 95");
    story.controller.round(NOON + 59).await;
    story.controller.round(NOON + 60).await;
    let activities = story.ask("DescribeScalingActivities", json!({})).await;
    assert_eq!(activities["ScalingActivities"].as_array().map(Vec::len), Some(2), "tried again after a pause");
}

#[tokio::test]
async fn suspended_scaling_does_nothing() {
    let story = Story::begin(2).await;
    story.track("SageMakerVariantConcurrentRequestsPerModelHighResolution", 5.0).await;
    let suspended = json!({"DynamicScalingOutSuspended": true});
    story.ask("RegisterScalableTarget", json!({ "SuspendedState": suspended })).await;
    story.load(40.0, NOON, 60).await;
    assert_eq!(story.instances(), Some(2));
}

#[tokio::test]
async fn an_alarm_brings_a_resource_back_from_zero() {
    let story = Story::begin(0).await;
    story.ask("RegisterScalableTarget", json!({"MinCapacity": 0})).await;
    let steps = json!({"AdjustmentType": "ChangeInCapacity", "Cooldown": 60,
        "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}]});
    let policy = json!({"PolicyName": "wake", "PolicyType": "StepScaling", "StepScalingPolicyConfiguration": steps});
    let arn = story.ask("PutScalingPolicy", policy).await["PolicyARN"].clone();
    story.alarm(&arn);
    story.controller.round(NOON + 10).await;
    assert_eq!(story.instances(), Some(0), "nothing was asked for yet");
    story.measure("NoCapacityInvocationFailures", NOON + 20, 1.0);
    story.cloudwatch.tick(NOON + 30);
    story.controller.round(NOON + 30).await;
    assert_eq!(story.instances(), Some(1));
    story.controller.round(NOON + 40).await;
    assert_eq!(story.instances(), Some(1), "it cools down");
    let described = story.ask("DescribeScalingPolicies", json!({})).await;
    assert_eq!(described["ScalingPolicies"][0]["Alarms"][0]["AlarmName"], "no-capacity");
}

#[tokio::test]
async fn made_faster_it_scales_out_after_one_period_and_in_after_two() {
    let mut story = Story::begin(2).await;
    story.controller.pace = Pace::default().faster(std::num::NonZeroU32::new(60).expect("not 0"));
    assert_eq!(story.controller.pace, Pace { periods_before_out: 1, seconds_before_in: 15, every: 1 });
    story.track("SageMakerVariantConcurrentRequestsPerModelHighResolution", 5.0).await;
    story.load(40.0, NOON + 300, 10).await;
    assert_eq!(story.instances(), Some(8));
    story.load(0.0, NOON + 310, 600).await;
    assert_eq!(story.instances(), Some(6), "cool-downs are the policy's own: one step in each 300 s");
}

impl Story {
    fn alarm(&self, action: &Value) {
        let input = json!({"AlarmName": "no-capacity", "Namespace": "AWS/SageMaker", "AlarmActions": [action],
            "MetricName": "NoCapacityInvocationFailures", "Statistic": "Maximum", "Period": 10, "EvaluationPeriods": 1,
            "Threshold": 1, "ComparisonOperator": "GreaterThanOrEqualToThreshold", "TreatMissingData": "missing",
            "Dimensions": [{"Name": "EndpointName", "Value": "chat"}, {"Name": "VariantName", "Value": "blue"}]});
        let target = "GraniteServiceVersion20100801.PutMetricAlarm";
        let (head, ()) = Request::post("/").header("x-amz-target", target).body(()).expect("a head").into_parts();
        let caller = Caller { account: ACCOUNT.into(), region: "eu-west-1".into(), access_key: None, name: None };
        let request = AwsRequest { head, body: input.to_string().into(), caller };
        assert_eq!(self.cloudwatch.answer(&request, NOON).status(), 200);
    }
}
