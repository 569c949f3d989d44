//! `DescribeAlarms`.

use super::queries;
use super::{Call, check, dimensions_document, place, token};
use crate::alarm::{Alarm, AlarmState, Watched};
use crate::document::Document;
use crate::input::{Input, Violations};
use crate::query::MetricStat;
use crate::{CloudWatch, Refusal, Statistic};

/// The most alarms of one answer, unless it says otherwise, as CloudWatch has it.
const PAGE: u32 = 50;

/// The account's alarms, or those that fit the request, by name.
pub(crate) fn describe_alarms(cloudwatch: &CloudWatch, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let names = input.texts("AlarmNames", 0..=100, 1..=255);
    let prefix = input.text("AlarmNamePrefix", 1..=255);
    let types = input.texts("AlarmTypes", 0..=3, 1..=64);
    let state = input.word("StateValue", AlarmState::WORDS, AlarmState::named);
    let action = input.text("ActionPrefix", 1..=1024);
    let most = input.integer("MaxRecords", 1..=100).unwrap_or(PAGE) as usize;
    let of_composites = input.has("ChildrenOfAlarmName") || input.has("ParentsOfAlarmName");
    check(&violations)?;
    if prefix.is_some() && !names.is_empty() {
        let message = "The parameters AlarmNamePrefix and AlarmNames are mutually exclusive.";
        return Err(Refusal::combination(message));
    }
    let after: Option<String> = place(&input)?;

    // There are metric alarms only.
    let none = of_composites || (!types.is_empty() && !types.contains(&"MetricAlarm"));
    let fits = |alarm: &&Alarm| {
        !none
            && (names.is_empty() || names.contains(&alarm.name.as_str()))
            && prefix.is_none_or(|prefix| alarm.name.starts_with(prefix))
            && state.is_none_or(|state| alarm.standing.state == state)
            && action.is_none_or(|action| alarm.actions().any(|own| own.starts_with(action)))
    };
    let alarms = cloudwatch.alarms();
    let mut found = alarms.after(&call.caller.account, after).filter(fits);
    let page: Vec<&Alarm> = found.by_ref().take(most).collect();
    let next = match (found.next(), page.last()) {
        (Some(_), Some(last)) => Some(token(&last.name)?),
        _ => None,
    };
    Ok(Document::structure([
        ("CompositeAlarms", Document::List(Vec::new())),
        ("MetricAlarms", Document::List(page.into_iter().map(document).collect())),
        ("LogAlarms", Document::List(Vec::new())),
        ("NextToken", next.into()),
    ]))
}

impl Alarm {
    fn actions(&self) -> impl Iterator<Item = &String> {
        self.ok_actions.iter().chain(&self.alarm_actions).chain(&self.insufficient_data_actions)
    }
}

fn document(alarm: &Alarm) -> Document {
    let texts = |texts: &[String]| Document::list(texts.iter().map(String::as_str));
    let Alarm { standing, rule, .. } = alarm;
    let mut members = Document::structure([
        ("AlarmName", alarm.name.as_str().into()),
        ("AlarmArn", alarm.arn.as_str().into()),
        ("AlarmDescription", alarm.description.as_deref().into()),
        ("AlarmConfigurationUpdatedTimestamp", Document::timestamp(alarm.configured)),
        ("ActionsEnabled", alarm.actions_enabled.into()),
        ("OKActions", texts(&alarm.ok_actions)),
        ("AlarmActions", texts(&alarm.alarm_actions)),
        ("InsufficientDataActions", texts(&alarm.insufficient_data_actions)),
        ("StateValue", standing.state.as_str().into()),
        ("StateReason", standing.reason.as_str().into()),
        ("StateReasonData", standing.reason_data.as_deref().into()),
        ("StateUpdatedTimestamp", Document::timestamp(standing.updated)),
        ("StateTransitionedTimestamp", Document::timestamp(standing.since)),
        ("EvaluationPeriods", rule.evaluation_periods.into()),
        ("DatapointsToAlarm", rule.datapoints_to_alarm.into()),
        ("Threshold", rule.threshold.into()),
        ("ComparisonOperator", rule.comparison.as_str().into()),
        ("TreatMissingData", rule.missing_data.map(|missing| missing.as_str()).into()),
    ]);
    let watched = match &alarm.watched {
        Watched::Stat(stat) => stat_document(stat),
        Watched::Queries(all) => Document::structure([("Metrics", queries::document(all))]),
    };
    if let (Document::Structure(members), Document::Structure(more)) = (&mut members, watched) {
        members.extend(more);
    }
    members
}

fn stat_document(stat: &MetricStat) -> Document {
    let word = stat.statistic.to_string();
    let is_percentile = matches!(stat.statistic, Statistic::Percentile(_));
    let (simple, extended) = if is_percentile { (None, Some(word)) } else { (Some(word), None) };
    Document::structure([
        ("Namespace", (*stat.metric.namespace).into()),
        ("MetricName", (*stat.metric.name).into()),
        ("Dimensions", dimensions_document(&stat.metric)),
        ("Period", stat.period.into()),
        ("Unit", stat.unit.map(|unit| unit.as_str()).into()),
        ("Statistic", simple.into()),
        ("ExtendedStatistic", extended.into()),
    ])
}
