//! `DescribeScalingPolicies` and `DeleteScalingPolicy`.

use isotherm_cloudwatch::Metric;
use isotherm_cloudwatch::document::Document;
use isotherm_cloudwatch::input::{Input, Violations};

use super::{Call, LONG, about, alarms, answer, check, is_sagemaker, named, nothing, page, resource};
use crate::error::Refusal;
use crate::record::{Policy, PolicyKind, Step, Steps, TargetTracking, TrackedMetric};
use crate::service::AutoScaling;

/// The account's policies, or those that fit the request.
pub(crate) fn describe_scaling_policies(
    service: &AutoScaling,
    call: Call<'_>,
    input: &Document,
) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let is_sagemaker = is_sagemaker(&input);
    let names = input.texts("PolicyNames", 0..=50, 1..=LONG);
    let id = input.text("ResourceId", 1..=LONG);
    let dimension = input.text("ScalableDimension", 1..=LONG);
    let page = page(&input)?;
    check(&violations)?;
    let fits = |policy: &&Policy| {
        is_sagemaker
            && (names.is_empty() || names.contains(&policy.name.as_str()) || names.contains(&policy.arn.as_str()))
            && id.is_none_or(|id| id == policy.resource.to_string())
            && dimension.is_none_or(|dimension| dimension == policy.resource.dimension())
    };
    let book = service.book();
    let policies = book.after(&call.caller.account, None).flat_map(|entry| entry.policies.values()).filter(fits);
    Ok(answer("ScalingPolicies", policies.map(|policy| document(service, policy)).collect(), page))
}

/// Takes a policy away.
pub(crate) fn delete_scaling_policy(
    service: &AutoScaling,
    call: Call<'_>,
    input: &Document,
) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let name = input.required_text("PolicyName", 1..=LONG);
    let key = (call.caller.account.clone(), resource(&input, &violations)?);
    let mut book = service.book();
    let Some(policy) = book.remove_policy(&key, name)? else {
        let message = format!("No scaling policy found for {}, policy name: {name}", named(&key.1));
        return Err(Refusal::not_found(message));
    };
    alarms::forget(service.cloudwatch(), &key.0, [&policy])?;
    Ok(nothing())
}

fn document(service: &AutoScaling, policy: &Policy) -> Document {
    let (kind, tracking, steps) = match &policy.kind {
        PolicyKind::TargetTracking(tracking) => ("TargetTrackingScaling", tracking_document(tracking), Document::Null),
        PolicyKind::Steps(steps) => ("StepScaling", Document::Null, steps_document(steps)),
    };
    about(
        &policy.resource,
        [
            ("PolicyARN", policy.arn.as_str().into()),
            ("PolicyName", policy.name.as_str().into()),
            ("PolicyType", kind.into()),
            ("TargetTrackingScalingPolicyConfiguration", tracking),
            ("StepScalingPolicyConfiguration", steps),
            ("Alarms", alarms::document(service, policy)),
            ("CreationTime", Document::timestamp(policy.created)),
        ],
    )
}

fn tracking_document(tracking: &TargetTracking) -> Document {
    let (mut predefined, mut customized) = (Document::Null, Document::Null);
    match &tracking.metric {
        TrackedMetric::Predefined(metric) => {
            predefined = Document::structure([("PredefinedMetricType", metric.as_str().into())]);
        }
        TrackedMetric::Customized { metric, statistic } => {
            customized = Document::structure([
                ("MetricName", (*metric.name).into()),
                ("Namespace", (*metric.namespace).into()),
                ("Dimensions", dimensions(metric)),
                ("Statistic", statistic.to_string().into()),
            ]);
        }
    }
    Document::structure([
        ("TargetValue", tracking.target_value.into()),
        ("PredefinedMetricSpecification", predefined),
        ("CustomizedMetricSpecification", customized),
        ("ScaleOutCooldown", tracking.scale_out_cooldown.into()),
        ("ScaleInCooldown", tracking.scale_in_cooldown.into()),
        ("DisableScaleIn", tracking.disable_scale_in.into()),
    ])
}

fn dimensions(metric: &Metric) -> Document {
    let dimensions = metric.dimensions().iter();
    Document::list(dimensions.map(|dimension| {
        Document::structure([("Name", (*dimension.name).into()), ("Value", (*dimension.value).into())])
    }))
}

fn steps_document(steps: &Steps) -> Document {
    let step = |step: &Step| {
        Document::structure([
            ("MetricIntervalLowerBound", step.lower.into()),
            ("MetricIntervalUpperBound", step.upper.into()),
            ("ScalingAdjustment", Document::Integer(step.adjustment.into())),
        ])
    };
    Document::structure([
        ("AdjustmentType", steps.adjustment.as_str().into()),
        ("StepAdjustments", Document::list(steps.steps.iter().map(step))),
        ("MinAdjustmentMagnitude", steps.least_change.into()),
        ("Cooldown", steps.cooldown.into()),
        ("MetricAggregationType", steps.aggregation.as_deref().into()),
    ])
}
