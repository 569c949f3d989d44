//! `PutMetricData`.

use super::{Call, check, dimensions, namespace, unit};
use crate::document::Document;
use crate::input::{Input, Violations};
use crate::{CloudWatch, Metric, Refusal, Resolution, Summary, Unit};

/// The most metrics of one request, as CloudWatch has it.
const MOST: usize = 1000;

/// The most distinct values of one metric in a request.
const MOST_VALUES: usize = 150;

/// How far values may lie in the past and in the future, in seconds.
const PAST: u64 = 14 * 86_400;
const FUTURE: u64 = 2 * 3600;

/// Takes in values of the caller's own metrics: all of them, or none when one is refused.
pub(crate) fn put_metric_data(cloudwatch: &CloudWatch, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let Some(namespace) = namespace(&input) else { return Err(Refusal::missing("Namespace")) };
    if namespace.starts_with("AWS/") {
        return Err(Refusal::value("The value AWS/ for parameter Namespace is invalid."));
    }
    let mut data = input.structures("MetricData", 0..=usize::MAX);
    for entity in input.structures("EntityMetricData", 0..=usize::MAX) {
        data.extend(entity.structures("MetricData", 0..=usize::MAX));
    }
    check(&violations)?;
    if data.is_empty() {
        return Err(Refusal::missing("MetricData"));
    }
    if data.len() > MOST {
        return Err(Refusal::value(format!("The collection MetricData must not have a size greater than {MOST}.")));
    }
    let mut read = Vec::with_capacity(data.len());
    for (index, datum) in data.iter().enumerate() {
        let at = format!("MetricData.member.{}", index + 1);
        read.push(Datum::read(datum, &at, namespace, call)?);
    }
    check(&violations)?;
    let mut store = cloudwatch.metrics();
    for datum in read {
        store.record(&datum.metric, datum.unit, datum.resolution, datum.time, &datum.values)?;
    }
    Ok(Document::Null)
}

struct Datum {
    metric: Metric,
    unit: Unit,
    resolution: Resolution,
    time: u64,
    values: Summary,
}

impl Datum {
    fn read(datum: &Input<'_>, at: &str, namespace: &str, call: Call<'_>) -> Result<Datum, Refusal> {
        let Some(name) = datum.text("MetricName", 1..=255) else {
            return Err(Refusal::missing(&format!("{at}.MetricName")));
        };
        let time = datum.timestamp("Timestamp").unwrap_or(call.now);
        let bound =
            |what| Refusal::value(format!("The parameter {at}.Timestamp must specify a time no more than {what}."));
        if time.saturating_add(PAST) < call.now {
            return Err(bound("two weeks in the past"));
        }
        if time > call.now + FUTURE {
            return Err(bound("two hours in the future"));
        }
        let resolution = match datum.integer("StorageResolution", 1..=60) {
            None | Some(60) => Resolution::Standard,
            Some(1) => Resolution::High,
            Some(other) => {
                let message =
                    format!("The value {other} for parameter {at}.StorageResolution is invalid: use 1 or 60.");
                return Err(Refusal::value(message));
            }
        };
        Ok(Datum {
            metric: Metric::new(&call.caller.account, namespace, name, dimensions(datum)),
            unit: unit(datum).unwrap_or(Unit::None),
            resolution,
            time,
            values: values(datum, at)?,
        })
    }
}

/// The values, in whichever of the three forms they come.
fn values(datum: &Input<'_>, at: &str) -> Result<Summary, Refusal> {
    let forms: Vec<&str> = ["Value", "Values", "StatisticValues"].into_iter().filter(|form| datum.has(form)).collect();
    match forms[..] {
        ["Value"] => Ok(Summary::of(finite(datum, "Value", at)?)),
        ["Values"] => counted(datum, at),
        ["StatisticValues"] => statistics(datum, at),
        [one, other, ..] => Err(Refusal::combination(format!(
            "The parameters {at}.{one} and {at}.{other} are mutually exclusive and you have specified both."
        ))),
        _ => Err(Refusal::missing(&format!("{at}.Value"))),
    }
}

fn counted(datum: &Input<'_>, at: &str) -> Result<Summary, Refusal> {
    let values = numbers(datum, "Values", at)?;
    let counts = if datum.has("Counts") { numbers(datum, "Counts", at)? } else { vec![1.0; values.len()] };
    if values.len() != counts.len() {
        let message = format!("The parameters {at}.Values and {at}.Counts must be of the same size.");
        return Err(Refusal::value(message));
    }
    if values.len() > MOST_VALUES {
        return Err(Refusal::value(format!(
            "The collection {at}.Values must not have a size greater than {MOST_VALUES}."
        )));
    }
    if let Some(count) = counts.iter().find(|count| **count <= 0.0) {
        return Err(Refusal::value(format!("The value {count} for parameter {at}.Counts is invalid.")));
    }
    Summary::of_values(values.into_iter().zip(counts)).ok_or_else(|| Refusal::missing(&format!("{at}.Values")))
}

fn statistics(datum: &Input<'_>, at: &str) -> Result<Summary, Refusal> {
    let at = format!("{at}.StatisticValues");
    let Some(set) = datum.structure("StatisticValues") else { return Err(Refusal::missing(&at)) };
    let number = |name: &str| finite(&set, name, &at);
    let (count, sum) = (number("SampleCount")?, number("Sum")?);
    let (minimum, maximum) = (number("Minimum")?, number("Maximum")?);
    if count <= 0.0 || minimum > maximum {
        let message =
            format!("The values of {at} are invalid: SampleCount must be above 0 and Minimum not above Maximum.");
        return Err(Refusal::value(message));
    }
    Ok(Summary::from_statistics(count, sum, minimum, maximum))
}

fn numbers(datum: &Input<'_>, name: &str, at: &str) -> Result<Vec<f64>, Refusal> {
    let list = datum.raw(name).as_list().unwrap_or_default();
    list.iter().map(|number| allowed(number, name, at)).collect()
}

fn finite(input: &Input<'_>, name: &str, at: &str) -> Result<f64, Refusal> {
    match input.raw(name) {
        Document::Null => Err(Refusal::missing(&format!("{at}.{name}"))),
        number => allowed(number, name, at),
    }
}

/// A number that CloudWatch takes: finite, of a magnitude up to 2³⁶⁰.
fn allowed(number: &Document, name: &str, at: &str) -> Result<f64, Refusal> {
    let value = number.as_number().unwrap_or(f64::NAN);
    if value.abs() <= 2f64.powi(360) {
        return Ok(value);
    }
    Err(Refusal::value(format!("The value {value} for parameter {at}.{name} is invalid.")))
}
