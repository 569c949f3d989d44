//! The operations, and how they read what several of them have in common.

mod alarm_changes;
mod describe_alarms;
mod get_metric_data;
mod get_metric_statistics;
mod list_metrics;
mod put_metric_alarm;
mod put_metric_data;
mod queries;
mod tags;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use isotherm_wire::aws::Caller;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use self::alarm_changes::{delete_alarms, set_alarm_state};
pub(crate) use self::describe_alarms::describe_alarms;
pub(crate) use self::get_metric_data::get_metric_data;
pub(crate) use self::get_metric_statistics::get_metric_statistics;
pub(crate) use self::list_metrics::list_metrics;
pub(crate) use self::put_metric_alarm::put_metric_alarm;
pub(crate) use self::put_metric_data::put_metric_data;
pub(crate) use self::tags::{list_tags_for_resource, tag_resource, untag_resource};
use crate::document::Document;
use crate::input::{Input, Violations};
use crate::{Dimension, Metric, Refusal, Unit};

/// Who asks, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'c> {
    pub(crate) caller: &'c Caller,
    /// Seconds of Unix time.
    pub(crate) now: u64,
}

/// Whether spans of so many seconds can be put together from what is kept.
pub(crate) fn is_period(seconds: u32) -> bool {
    matches!(seconds, 10 | 20 | 30) || (seconds > 0 && seconds.is_multiple_of(60))
}

/// A period in seconds, as a request names it; `None` also where it is refused.
fn period(input: &Input<'_>, name: &str) -> Option<u32> {
    let period = input.integer(name, 1..=86_400 * 7)?;
    if !is_period(period) {
        let constraint = "Member must be 10, 20, 30 or a multiple of 60";
        input.violation(&period.to_string(), name, constraint);
        return None;
    }
    Some(period)
}

/// A namespace.
fn namespace<'a>(input: &Input<'a>) -> Option<&'a str> {
    let namespace = input.text("Namespace", 1..=255)?;
    if namespace.starts_with(':') {
        input.violation(namespace, "Namespace", "Member must satisfy regular expression pattern: [^:].*");
    }
    Some(namespace)
}

/// The dimensions of a metric.
fn dimensions(input: &Input<'_>) -> Vec<Dimension> {
    let dimensions = input.structures("Dimensions", 0..=30);
    let read = |dimension: Input<'_>| {
        Dimension::new(dimension.required_text("Name", 1..=255), dimension.required_text("Value", 1..=1024))
    };
    dimensions.into_iter().map(read).collect()
}

/// A unit.
fn unit(input: &Input<'_>) -> Option<Unit> {
    let words: Vec<&str> = Unit::ALL.iter().map(|unit| unit.as_str()).collect();
    input.word("Unit", &words, Unit::named)
}

/// A metric in an answer.
fn metric_document(metric: &Metric) -> Document {
    Document::structure([
        ("Namespace", (*metric.namespace).into()),
        ("MetricName", (*metric.name).into()),
        ("Dimensions", dimensions_document(metric)),
    ])
}

fn dimensions_document(metric: &Metric) -> Document {
    let dimension = |of: &Dimension| Document::structure([("Name", (*of.name).into()), ("Value", (*of.value).into())]);
    Document::List(metric.dimensions().iter().map(dimension).collect())
}

/// Refuses a request that violates the model's constraints.
fn check(violations: &Violations) -> Result<(), Refusal> {
    violations.check().map_err(Refusal::validation)
}

/// A token from which a listing goes on.
fn token<T: Serialize>(place: &T) -> Result<String, Refusal> {
    let json = serde_json::to_vec(place).map_err(|error| Refusal::internal(error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(json))
}

/// The place that the request's token tells, if it has one.
fn place<T: DeserializeOwned>(input: &Input<'_>) -> Result<Option<T>, Refusal> {
    let Some(token) = input.text("NextToken", 0..=65_536) else { return Ok(None) };
    let json = URL_SAFE_NO_PAD.decode(token).map_err(|_| Refusal::next_token())?;
    serde_json::from_slice(&json).map(Some).map_err(|_| Refusal::next_token())
}
