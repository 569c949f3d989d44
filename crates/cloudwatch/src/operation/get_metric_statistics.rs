//! `GetMetricStatistics`.

use super::{Call, check, dimensions, namespace, period, unit};
use crate::document::Document;
use crate::input::{Input, Violations};
use crate::{CloudWatch, Metric, Refusal, Statistic, Summary, Unit, Window};

/// The most points of one answer, as CloudWatch has it.
const MOST: u64 = 1440;

/// Statistics of one metric, by period, one point for each unit that it has values in.
pub(crate) fn get_metric_statistics(
    cloudwatch: &CloudWatch,
    call: Call<'_>,
    input: &Document,
) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    for required in ["Namespace", "MetricName", "StartTime", "EndTime", "Period"] {
        if !input.has(required) {
            return Err(Refusal::missing(required));
        }
    }
    let namespace = namespace(&input).unwrap_or_default();
    let name = input.required_text("MetricName", 1..=255);
    let metric = Metric::new(&call.caller.account, namespace, name, dimensions(&input));
    let (start, end) = (input.timestamp("StartTime"), input.timestamp("EndTime"));
    let period = period(&input, "Period");
    let unit = unit(&input);
    let asked = statistics(&input);
    check(&violations)?;
    let (Some(start), Some(end), Some(period)) = (start, end, period) else { return Err(Refusal::missing("Period")) };
    if asked.is_empty() {
        let message = "At least one of the parameters Statistics and ExtendedStatistics must be specified.";
        return Err(Refusal::combination(message));
    }
    if start >= end {
        return Err(Refusal::value("The parameter StartTime must be less than the parameter EndTime."));
    }
    let window = Window::rounded(start, end, period.into());
    if window.periods() > MOST {
        return Err(Refusal::combination(format!(
            "You have requested up to {} datapoints, which exceeds the limit of {MOST}. You may reduce the datapoints \
             requested by increasing Period, or decreasing the time range.",
            window.periods()
        )));
    }
    let store = cloudwatch.metrics();
    let mut points = Vec::new();
    for of_unit in store.units(&metric).filter(|of_unit| unit.is_none_or(|unit| unit == *of_unit)) {
        let periods = store.periods_of_unit(&metric, of_unit, window);
        points.extend(periods.iter().map(|(time, values)| point(*time, values, of_unit, &asked)));
    }
    Ok(Document::structure([("Label", name.into()), ("Datapoints", Document::List(points))]))
}

/// What is asked for, with the words in which it is.
fn statistics<'a>(input: &Input<'a>) -> Vec<(&'a str, Statistic)> {
    let mut statistics = Vec::new();
    for (member, most, allowed) in
        [("Statistics", 5, "[SampleCount, Average, Sum, Minimum, Maximum]"), ("ExtendedStatistics", 10, "[p0 to p100]")]
    {
        for word in input.texts(member, 1..=most, 1..=64) {
            match Statistic::named(word).filter(|of| matches!(of, Statistic::Percentile(_)) == (most == 10)) {
                Some(statistic) => statistics.push((word, statistic)),
                None => input.violation(word, member, &format!("Member must satisfy enum value set: {allowed}")),
            }
        }
    }
    statistics
}

fn point(time: u64, values: &Summary, unit: Unit, asked: &[(&str, Statistic)]) -> Document {
    let mut members = vec![("Timestamp".into(), Document::timestamp(time)), ("Unit".into(), unit.as_str().into())];
    let mut extended = Vec::new();
    for (word, statistic) in asked {
        let Some(value) = statistic.of(values) else { continue };
        match statistic {
            Statistic::Percentile(_) => extended.push(((*word).to_owned(), value.into())),
            _ => members.push(((*word).to_owned().into(), value.into())),
        }
    }
    if !extended.is_empty() {
        members.push(("ExtendedStatistics".into(), Document::Map(extended)));
    }
    Document::Structure(members)
}
