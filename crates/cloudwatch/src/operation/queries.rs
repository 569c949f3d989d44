//! Reads the queries of `GetMetricData` and of alarms over several metrics, and writes them back.

use super::{check, dimensions, metric_document, namespace, period, unit};
use crate::document::Document;
use crate::expression::Expression;
use crate::input::{Input, Violations};
use crate::query::{MetricQuery, MetricStat, Queries, Source};
use crate::{Metric, Refusal, Statistic};

/// The queries in a member of the request.
pub(super) fn queries(
    input: &Input<'_>,
    member: &str,
    account: &str,
    violations: &Violations,
) -> Result<Queries, Refusal> {
    let mut queries = Vec::new();
    for (index, query) in input.structures(member, 0..=usize::MAX).iter().enumerate() {
        queries.push(read(query, &format!("{member}.member.{}", index + 1), account)?);
        check(violations)?;
    }
    Queries::new(queries).map_err(Refusal::validation)
}

fn read(query: &Input<'_>, at: &str, account: &str) -> Result<MetricQuery, Refusal> {
    let id = query.required_text("Id", 1..=255).to_owned();
    let is_id =
        id.starts_with(|c: char| c.is_ascii_lowercase()) && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_id && !id.is_empty() {
        return Err(Refusal::validation(format!(
            "The value {id} for parameter {at}.Id is invalid: an id begins with a lowercase letter and holds letters, \
             digits and underscores."
        )));
    }
    let own_period = period(query, "Period");
    let source = match (query.structure("MetricStat"), query.text("Expression", 1..=2048)) {
        (Some(stat), None) => metric_stat(&stat, &format!("{at}.MetricStat"), account)?,
        (None, Some(text)) => match Expression::try_from(text.to_owned()) {
            Ok(expression) => Source::Expression { expression, period: own_period },
            Err(error) => return Err(Refusal::validation(format!("Error in expression '{id}': {error}."))),
        },
        (Some(_), Some(_)) => {
            let message = format!("The parameters {at}.Expression and {at}.MetricStat are mutually exclusive.");
            return Err(Refusal::validation(message));
        }
        (None, None) => {
            let message = format!("Either {at}.MetricStat or {at}.Expression must be specified.");
            return Err(Refusal::validation(message));
        }
    };
    let label = query.text("Label", 0..=2048).map(str::to_owned);
    Ok(MetricQuery { id, label, returned: query.boolean("ReturnData").unwrap_or(true), source })
}

fn metric_stat(stat: &Input<'_>, at: &str, account: &str) -> Result<Source, Refusal> {
    for required in ["Metric", "Stat", "Period"] {
        stat.require(required);
    }
    let metric = stat.structure("Metric").map(|metric| {
        for required in ["Namespace", "MetricName"] {
            metric.require(required);
        }
        let name = metric.text("MetricName", 1..=255).unwrap_or_default();
        Metric::new(account, namespace(&metric).unwrap_or_default(), name, dimensions(&metric))
    });
    let word = stat.text("Stat", 1..=64).unwrap_or_default();
    let Some(statistic) = Statistic::named(word) else {
        return Err(Refusal::validation(format!(
            "The value {word} for parameter {at}.Stat is not supported: use one of {}.",
            Statistic::WORDS
        )));
    };
    Ok(Source::Stat(MetricStat {
        metric: metric.unwrap_or_else(|| Metric::new(account, "", "", Vec::new())),
        statistic,
        unit: unit(stat),
        period: period(stat, "Period").unwrap_or(60),
    }))
}

/// The queries as they are told.
pub(super) fn document(queries: &Queries) -> Document {
    let query = |query: &MetricQuery| {
        let (mut stat, mut expression, mut period) = (Document::Null, Document::Null, Document::Null);
        match &query.source {
            Source::Stat(of) => stat = stat_document(of),
            Source::Expression { expression: of, period: own } => {
                expression = String::from(of.clone()).into();
                period = (*own).into();
            }
        }
        Document::structure([
            ("Id", query.id.as_str().into()),
            ("MetricStat", stat),
            ("Expression", expression),
            ("Label", query.label.as_deref().into()),
            ("ReturnData", query.returned.into()),
            ("Period", period),
        ])
    };
    Document::List(queries.all().iter().map(query).collect())
}

fn stat_document(stat: &MetricStat) -> Document {
    Document::structure([
        ("Metric", metric_document(&stat.metric)),
        ("Period", stat.period.into()),
        ("Stat", stat.statistic.to_string().into()),
        ("Unit", stat.unit.map(|unit| unit.as_str()).into()),
    ])
}
