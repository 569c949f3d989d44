//! The alarms of target tracking policies, which show in CloudWatch what such a policy waits for.
//!
//! Application Auto Scaling scales when they go off; here the controller looks at the metric itself, by the same rules, and
//! the alarms are for people.

use isotherm_cloudwatch::document::Document;
use isotherm_cloudwatch::{CloudWatch, Dimension};

use super::Call;
use crate::error::Refusal;
use crate::metrics::Gauge;
use crate::record::{Policy, PolicyKind, TargetTracking};
use crate::service::{AutoScaling, random_id};

/// Makes or changes a policy's alarms, and notes their names in it.
pub(super) fn make(service: &AutoScaling, call: Call<'_>, policy: &mut Policy) -> Result<(), Refusal> {
    let PolicyKind::TargetTracking(tracking) = policy.kind.clone() else { return Ok(()) };
    let gauge = Gauge::of(&tracking.metric, &policy.owner, &policy.resource);
    let sides: &[Side] = if tracking.disable_scale_in { &[Side::High] } else { &[Side::High, Side::Low] };
    let known = std::mem::take(&mut policy.alarms);
    for side in sides {
        let part = format!("-Alarm{side:?}-");
        let known = known.iter().find(|name| name.contains(&part));
        let made = || format!("TargetTracking-{}{part}{}", policy.resource, random_id());
        let name = known.cloned().unwrap_or_else(made);
        let alarm = alarm(&name, *side, &tracking, &gauge, &policy.arn);
        service.cloudwatch().put_alarm(call.caller, &alarm, call.now).map_err(|refusal| {
            Refusal::limit(format!("An alarm of the policy could not be made: {}", refusal.message))
        })?;
        policy.alarms.push(name);
    }
    let gone: Vec<&String> = known.iter().filter(|name| !policy.alarms.contains(name)).collect();
    remove(service.cloudwatch(), &policy.owner.account, gone)
}

/// Takes the alarms of policies away.
pub(crate) fn forget<'p>(
    cloudwatch: &CloudWatch,
    account: &str,
    policies: impl IntoIterator<Item = &'p Policy>,
) -> Result<(), Refusal> {
    remove(cloudwatch, account, policies.into_iter().flat_map(|policy| &policy.alarms).collect())
}

/// The alarms of a policy as it is told: those that were made for it, or that call it now.
pub(super) fn document(service: &AutoScaling, policy: &Policy) -> Document {
    let (region, account) = (&policy.owner.region, &policy.owner.account);
    let made =
        policy.alarms.iter().map(|name| (name.clone(), format!("arn:aws:cloudwatch:{region}:{account}:alarm:{name}")));
    let calling = service.cloudwatch().alarms_calling(account, &policy.arn);
    let calling = calling.into_iter().filter(|alarm| !policy.alarms.contains(&alarm.name));
    let all = made.chain(calling.map(|alarm| (alarm.name, alarm.arn)));
    Document::list(all.map(|(name, arn)| Document::structure([("AlarmName", name.into()), ("AlarmARN", arn.into())])))
}

/// Which way an alarm looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    High,
    Low,
}

fn alarm(name: &str, side: Side, tracking: &TargetTracking, gauge: &Gauge, policy: &str) -> Document {
    let (comparison, threshold, periods, period) = match side {
        Side::High => ("GreaterThanThreshold", tracking.target_value, 3, gauge.period),
        Side::Low => ("LessThanThreshold", tracking.target_value * 0.9, 15, gauge.period.max(60)),
    };
    let dimension = |of: &Dimension| Document::structure([("Name", (*of.name).into()), ("Value", (*of.value).into())]);
    Document::structure([
        ("AlarmName", name.into()),
        ("AlarmDescription", format!("DO NOT EDIT OR DELETE. For TargetTrackingScaling policy {policy}.").into()),
        ("AlarmActions", Document::list([policy])),
        ("Namespace", (*gauge.metric.namespace).into()),
        ("MetricName", (*gauge.metric.name).into()),
        ("Dimensions", Document::list(gauge.metric.dimensions().iter().map(dimension))),
        ("Statistic", gauge.statistic.to_string().into()),
        ("Period", (period as f64).into()),
        ("EvaluationPeriods", f64::from(periods).into()),
        ("Threshold", threshold.into()),
        ("ComparisonOperator", comparison.into()),
    ])
}

fn remove(cloudwatch: &CloudWatch, account: &str, names: Vec<&String>) -> Result<(), Refusal> {
    if names.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    cloudwatch.remove_alarms(account, &names).map_err(|refusal| Refusal::internal(refusal.message))
}
