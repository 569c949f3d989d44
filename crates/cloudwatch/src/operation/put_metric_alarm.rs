//! `PutMetricAlarm`.

use super::queries::queries;
use super::{Call, check, dimensions, namespace, period, tags, unit};
use crate::alarm::{Alarm, AlarmState, Comparison, MissingData, Rule, Standing, Watched};
use crate::document::Document;
use crate::input::{Input, Violations};
use crate::query::MetricStat;
use crate::{CloudWatch, Metric, Refusal, Statistic};

/// How far back an alarm may look, in seconds: a day, or a week where its periods are hours or longer.
const DAY: u64 = 86_400;
const WEEK: u64 = 7 * DAY;

/// The most queries of an alarm.
const MOST_QUERIES: usize = 20;

/// What alarms here can't do, and are not silently made without.
const UNSUPPORTED: [&str; 5] =
    ["ThresholdMetricId", "EvaluationWindow", "WarmUpConfiguration", "EvaluationCriteria", "EvaluationInterval"];

/// Makes an alarm, or changes one; a changed one keeps its state until it is next evaluated.
pub(crate) fn put_metric_alarm(cloudwatch: &CloudWatch, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let name = input.required_text("AlarmName", 1..=255).to_owned();
    let description = input.text("AlarmDescription", 0..=1024).map(str::to_owned);
    let actions = |member| input.texts(member, 0..=5, 1..=1024).into_iter().map(str::to_owned).collect();
    let (ok_actions, alarm_actions) = (actions("OKActions"), actions("AlarmActions"));
    let insufficient_data_actions = actions("InsufficientDataActions");
    let actions_enabled = input.boolean("ActionsEnabled").unwrap_or(true);
    let rule = rule(&input);
    if let Some(member) = UNSUPPORTED.into_iter().find(|member| input.has(member)) {
        return Err(Refusal::validation(format!(
            "The parameter {member} is not supported: alarms here compare a metric, or an expression, with a Threshold."
        )));
    }
    let watched = watched(&input, &call.caller.account, &violations)?;
    check(&violations)?;
    let (Some(rule), Some(watched)) = (rule, watched) else { return Err(Refusal::missing("Threshold")) };
    refuse_contradictions(&rule, &watched)?;

    let mut alarms = cloudwatch.alarms();
    let standing = alarms.get(&call.caller.account, &name).map(|present| present.standing.clone());
    let standing = standing.map(|standing| Standing { evaluated_to: None, ..standing });
    let (region, account) = (&call.caller.region, &call.caller.account);
    let tags = match alarms.get(account, &name) {
        Some(present) => present.tags.clone(),
        None => tags::tags(&input)?,
    };
    check(&violations)?;
    let alarm = Alarm {
        tags,
        arn: format!("arn:aws:cloudwatch:{region}:{account}:alarm:{name}"),
        name,
        description,
        actions_enabled,
        ok_actions,
        alarm_actions,
        insufficient_data_actions,
        watched,
        rule,
        configured: call.now,
        standing: standing.unwrap_or_else(|| Standing::initial(call.now)),
    };
    alarms.put(account, alarm)?;
    Ok(Document::Null)
}

fn rule(input: &Input<'_>) -> Option<Rule> {
    for required in ["EvaluationPeriods", "ComparisonOperator", "Threshold"] {
        input.require(required);
    }
    let evaluation_periods = input.integer("EvaluationPeriods", 1..=u32::MAX);
    let datapoints_to_alarm = input.integer("DatapointsToAlarm", 1..=u32::MAX);
    let comparison = input.word("ComparisonOperator", Comparison::WORDS, Comparison::named);
    let threshold = input.number("Threshold");
    let missing_data = input.word("TreatMissingData", MissingData::WORDS, MissingData::named);
    Some(Rule {
        evaluation_periods: evaluation_periods?,
        datapoints_to_alarm,
        threshold: threshold.filter(|threshold| threshold.is_finite())?,
        comparison: comparison?,
        missing_data,
    })
}

fn watched(input: &Input<'_>, account: &str, violations: &Violations) -> Result<Option<Watched>, Refusal> {
    if input.has("Metrics") {
        if let Some(other) =
            ["MetricName", "Namespace", "Statistic", "ExtendedStatistic", "Period", "Dimensions", "Unit"]
                .into_iter()
                .find(|other| input.has(other))
        {
            let message = format!("The parameters Metrics and {other} are mutually exclusive.");
            return Err(Refusal::combination(message));
        }
        input.structures("Metrics", 1..=MOST_QUERIES);
        check(violations)?;
        let queries = queries(input, "Metrics", account, violations)?;
        if queries.searches() > 0 {
            return Err(Refusal::validation("SEARCH is not supported on Metric Alarms."));
        }
        return Ok(Some(Watched::Queries(queries)));
    }
    for required in ["MetricName", "Namespace", "Period"] {
        input.require(required);
    }
    let words = ["SampleCount", "Average", "Sum", "Minimum", "Maximum"];
    let simple = |word: &str| Statistic::named(word).filter(|_| words.contains(&word));
    let statistic = match (input.has("Statistic"), input.has("ExtendedStatistic")) {
        (true, false) => input.word("Statistic", &words, simple),
        (false, true) => input.word("ExtendedStatistic", &["p0 to p100"], Statistic::percentile),
        (true, true) => {
            return Err(Refusal::combination("The parameters Statistic and ExtendedStatistic are mutually exclusive."));
        }
        (false, false) => {
            return Err(Refusal::validation("Either Statistic or ExtendedStatistic must be specified."));
        }
    };
    let name = input.text("MetricName", 1..=255);
    let metric =
        Metric::new(account, namespace(input).unwrap_or_default(), name.unwrap_or_default(), dimensions(input));
    let (unit, period) = (unit(input), period(input, "Period"));
    let stat = |statistic, period| Watched::Stat(MetricStat { metric, statistic, unit, period });
    Ok(statistic.zip(period).map(|(statistic, period)| stat(statistic, period)))
}

fn refuse_contradictions(rule: &Rule, watched: &Watched) -> Result<(), Refusal> {
    if let Some(objection) = watched.objection() {
        return Err(Refusal::validation(format!("The alarm can't be evaluated: {objection}.")));
    }
    if rule.needed() > rule.evaluation_periods {
        return Err(Refusal::validation("DatapointsToAlarm must not be greater than EvaluationPeriods."));
    }
    let period = watched.period();
    let longest = if period < 3600 { DAY } else { WEEK };
    if period * u64::from(rule.evaluation_periods) > longest {
        return Err(Refusal::validation(format!(
            "Metrics cannot be checked across more than {}: EvaluationPeriods times Period must be at most {longest} \
             seconds.",
            if longest == DAY { "a day" } else { "a week" }
        )));
    }
    Ok(())
}

impl Standing {
    /// How an alarm stands before it was first evaluated.
    fn initial(now: u64) -> Standing {
        Standing {
            state: AlarmState::InsufficientData,
            reason: "Unchecked: Initial alarm creation".to_owned(),
            reason_data: None,
            updated: now,
            since: now,
            evaluated_to: None,
            held_until: 0,
        }
    }
}
