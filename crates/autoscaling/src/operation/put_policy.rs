//! `PutScalingPolicy`.

use isotherm_cloudwatch::document::Document;
use isotherm_cloudwatch::input::{Input, Violations};
use isotherm_cloudwatch::{Dimension, Metric, Statistic};

use super::{Call, alarms, check, named, resource};
use crate::error::Refusal;
use crate::record::{Adjustment, Policy, PolicyKind, PredefinedMetric, Step, Steps, TargetTracking, TrackedMetric};
use crate::resource::Resource;
use crate::service::{AutoScaling, random_id};

/// The cool-down of SageMaker's resources where none is given, in seconds.
const COOLDOWN: u32 = 300;

/// Gives a target a policy, or changes one.
pub(crate) fn put_scaling_policy(service: &AutoScaling, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let name = input.required_text("PolicyName", 1..=256);
    if name.chars().any(char::is_control) {
        input.violation(name, "PolicyName", "Member must satisfy regular expression pattern: \\p{Print}+");
    }
    let resource = resource(&input, &violations)?;
    let kind = kind(&input, &resource, call)?;
    check(&violations)?;

    let mut book = service.book();
    let key = (call.caller.account.clone(), resource);
    let Some(entry) = book.get(&key) else {
        return Err(Refusal::not_found(format!("No scalable target registered for {}", named(&key.1))));
    };
    let present = entry.policies.get(name);
    if present.is_some_and(|present| std::mem::discriminant(&present.kind) != std::mem::discriminant(&kind)) {
        return Err(Refusal::validation(
            "You cannot update a scaling policy to a different policy type: delete it first.",
        ));
    }
    let (region, account, resource) = (&call.caller.region, &key.0, key.1);
    let mut policy = Policy {
        owner: call.owner(),
        alarms: present.map_or_else(Vec::new, |present| present.alarms.clone()),
        name: name.to_owned(),
        arn: present.map_or_else(
            || {
                let id = random_id();
                format!("arn:aws:autoscaling:{region}:{account}:scalingPolicy:{id}:resource/sagemaker/{resource}:policyName/{name}")
            },
            |present| present.arn.clone(),
        ),
        created: present.map_or(call.now, |present| present.created),
        updated: call.now,
        resource,
        kind,
    };
    book.refuse_one_more(&policy)?;
    alarms::make(service, call, &mut policy)?;
    let (arn, alarms) = (policy.arn.clone(), alarms::document(service, &policy));
    book.put_policy(policy)?;
    Ok(Document::structure([("PolicyARN", arn.into()), ("Alarms", alarms)]))
}

fn kind(input: &Input<'_>, resource: &Resource, call: Call<'_>) -> Result<PolicyKind, Refusal> {
    let types = ["StepScaling", "TargetTrackingScaling", "PredictiveScaling"];
    let given = input.word("PolicyType", &types, |word| types.into_iter().find(|known| *known == word));
    let tracking = input.structure("TargetTrackingScalingPolicyConfiguration");
    let steps = input.structure("StepScalingPolicyConfiguration");
    let implied = if tracking.is_some() { "TargetTrackingScaling" } else { "StepScaling" };
    match (given.unwrap_or(implied), tracking, steps) {
        ("TargetTrackingScaling", Some(tracking), None) => {
            target_tracking(&tracking, resource, call).map(PolicyKind::TargetTracking)
        }
        ("StepScaling", None, Some(steps)) => step_scaling(&steps).map(PolicyKind::Steps),
        ("PredictiveScaling", ..) => Err(Refusal::validation(
            "PredictiveScaling is not supported for SageMaker's resources: use TargetTrackingScaling or StepScaling.",
        )),
        (kind, ..) => Err(Refusal::validation(format!(
            "A policy of type {kind} needs {kind}PolicyConfiguration and no other policy configuration."
        ))),
    }
}

fn target_tracking(input: &Input<'_>, resource: &Resource, call: Call<'_>) -> Result<TargetTracking, Refusal> {
    input.require("TargetValue");
    let target_value = input.number("TargetValue").unwrap_or(1.0);
    if !(target_value > 0.0 && target_value.is_finite()) {
        return Err(Refusal::validation(format!("TargetValue must be greater than 0, not {target_value}.")));
    }
    let predefined = input.structure("PredefinedMetricSpecification");
    let customized = input.structure("CustomizedMetricSpecification");
    let metric = match (predefined, customized) {
        (Some(predefined), None) => predefined_metric(&predefined, resource)?,
        (None, Some(customized)) => customized_metric(&customized, call)?,
        _ => {
            return Err(Refusal::validation(
                "Exactly one of PredefinedMetricSpecification and CustomizedMetricSpecification must be specified.",
            ));
        }
    };
    let cooldown = |name| input.integer(name, 0..=i32::MAX as u32).unwrap_or(COOLDOWN);
    Ok(TargetTracking {
        target_value,
        metric,
        scale_out_cooldown: cooldown("ScaleOutCooldown"),
        scale_in_cooldown: cooldown("ScaleInCooldown"),
        disable_scale_in: input.boolean("DisableScaleIn").unwrap_or(false),
    })
}

fn predefined_metric(input: &Input<'_>, resource: &Resource) -> Result<TrackedMetric, Refusal> {
    let word = input.required_text("PredefinedMetricType", 0..=255);
    let of_resource = PredefinedMetric::of(resource);
    let metric = PredefinedMetric::named(word).filter(|metric| of_resource.contains(metric));
    metric.map(TrackedMetric::Predefined).ok_or_else(|| {
        Refusal::validation(format!(
            "The predefined metric {word:?} does not scale {}: use {} or {}.",
            resource.dimension(),
            of_resource[0].as_str(),
            of_resource[1].as_str()
        ))
    })
}

fn customized_metric(input: &Input<'_>, call: Call<'_>) -> Result<TrackedMetric, Refusal> {
    if input.has("Metrics") {
        let message = "CustomizedMetricSpecification.Metrics (metric math) is not supported: name one metric.";
        return Err(Refusal::validation(message));
    }
    let words = ["Average", "Minimum", "Maximum", "SampleCount", "Sum"];
    for required in ["MetricName", "Namespace", "Statistic"] {
        input.require(required);
    }
    let statistic = input.word("Statistic", &words, |word| Statistic::named(word).filter(|_| words.contains(&word)));
    let dimensions = input.structures("Dimensions", 0..=10);
    let dimension =
        |of: &Input<'_>| Dimension::new(of.required_text("Name", 1..=255), of.required_text("Value", 1..=1024));
    let dimensions = dimensions.iter().map(dimension).collect();
    let name = |member| input.text(member, 1..=255).unwrap_or_default();
    Ok(TrackedMetric::Customized {
        metric: Metric::new(&call.caller.account, name("Namespace"), name("MetricName"), dimensions),
        statistic: statistic.unwrap_or(Statistic::Average),
    })
}

fn step_scaling(input: &Input<'_>) -> Result<Steps, Refusal> {
    for required in ["AdjustmentType", "StepAdjustments"] {
        input.require(required);
    }
    let adjustment = input.word("AdjustmentType", &Adjustment::WORDS, Adjustment::named);
    let aggregations = ["Average", "Minimum", "Maximum"];
    let aggregation = input
        .word("MetricAggregationType", &aggregations, |word| aggregations.contains(&word).then(|| word.to_owned()));
    let mut steps = Vec::new();
    for step in input.structures("StepAdjustments", 1..=20) {
        step.require("ScalingAdjustment");
        let adjustment = step.number("ScalingAdjustment").unwrap_or(0.0);
        if adjustment.fract() != 0.0 || adjustment.abs() > f64::from(i32::MAX) {
            step.violation(&adjustment.to_string(), "ScalingAdjustment", "Member must be a whole number");
        }
        let (lower, upper) = (step.number("MetricIntervalLowerBound"), step.number("MetricIntervalUpperBound"));
        // Whole and in range, or refused.
        steps.push(Step { lower, upper, adjustment: adjustment as i32 });
    }
    refuse_overlaps(&mut steps)?;
    Ok(Steps {
        adjustment: adjustment.unwrap_or(Adjustment::By),
        steps,
        least_change: input.integer("MinAdjustmentMagnitude", 0..=i32::MAX as u32),
        cooldown: input.integer("Cooldown", 0..=i32::MAX as u32).unwrap_or(COOLDOWN),
        aggregation,
    })
}

/// Sorts the steps, and refuses those that overlap or leave a gap.
fn refuse_overlaps(steps: &mut [Step]) -> Result<(), Refusal> {
    let lower = |step: &Step| step.lower.unwrap_or(f64::NEG_INFINITY);
    let upper = |step: &Step| step.upper.unwrap_or(f64::INFINITY);
    if steps.iter().any(|step| lower(step) >= upper(step)) {
        let message = "A step's MetricIntervalLowerBound must be less than its MetricIntervalUpperBound.";
        return Err(Refusal::validation(message));
    }
    steps.sort_by(|a, b| lower(a).total_cmp(&lower(b)));
    if steps.windows(2).any(|pair| upper(&pair[0]) != lower(&pair[1])) {
        return Err(Refusal::validation("StepAdjustments must neither overlap nor leave a gap."));
    }
    Ok(())
}
