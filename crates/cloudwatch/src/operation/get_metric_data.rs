//! `GetMetricData`.

use serde::{Deserialize, Serialize};

use super::queries::queries;
use super::{Call, check, place, token};
use crate::document::Document;
use crate::input::{Input, Violations};
use crate::query::TimeSeries;
use crate::{CloudWatch, Refusal};

/// The most queries of one request, as CloudWatch has it.
const MOST_QUERIES: usize = 500;

/// The most searches of one request: each looks at every metric.
const MOST_SEARCHES: usize = 10;

/// The most points of one answer, as CloudWatch has it.
const MOST_POINTS: u32 = 100_800;

/// How many points of the whole answer were told before, and how long the whole is.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    told: usize,
    queries: usize,
}

/// Values of several metrics and expressions over time.
pub(crate) fn get_metric_data(cloudwatch: &CloudWatch, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    for required in ["MetricDataQueries", "StartTime", "EndTime"] {
        input.require(required);
    }
    let asked = input.raw("MetricDataQueries").as_list().map_or(0, <[Document]>::len);
    if asked > MOST_QUERIES {
        let message = format!("The collection MetricDataQueries must not have a size greater than {MOST_QUERIES}.");
        return Err(Refusal::validation(message));
    }
    let words = ["TimestampDescending", "TimestampAscending"];
    let ascending = input.word("ScanBy", &words, |word| words.contains(&word).then_some(word == words[1]));
    let most = input.integer("MaxDatapoints", 1..=MOST_POINTS).unwrap_or(MOST_POINTS) as usize;
    let (start, end) = (input.timestamp("StartTime"), input.timestamp("EndTime"));
    let queries = queries(&input, "MetricDataQueries", &call.caller.account, &violations)?;
    check(&violations)?;
    if queries.searches() > MOST_SEARCHES {
        let message = format!("At most {MOST_SEARCHES} expressions of a request may hold a SEARCH.");
        return Err(Refusal::validation(message));
    }
    let (Some(start), Some(end)) = (start, end) else { return Err(Refusal::missing("StartTime")) };
    if start >= end {
        return Err(Refusal::validation("The parameter StartTime must be less than the parameter EndTime."));
    }
    let told = match place::<Place>(&input)? {
        Some(place) if place.queries == asked => place.told,
        Some(_) => return Err(Refusal::next_token()),
        None => 0,
    };
    let store = cloudwatch.metrics();
    let returned = queries.all().iter().filter(|query| query.returned);
    let series = returned.flat_map(|query| {
        let found = queries.evaluate(query, &store, &call.caller.account, (start, end));
        found.into_iter().map(|series| (query.id.as_str(), series))
    });
    let (results, more) = page(series, told, most, ascending.unwrap_or(false));
    let next = if more { Some(token(&Place { told: told + most, queries: asked })?) } else { None };
    Ok(Document::structure([
        ("MetricDataResults", Document::List(results)),
        ("NextToken", next.into()),
        ("Messages", Document::List(Vec::new())),
    ]))
}

/// The series after `told` points, up to `most` points, and whether there are more. What has no points comes first.
fn page<'q>(
    series: impl Iterator<Item = (&'q str, TimeSeries)>,
    told: usize,
    most: usize,
    ascending: bool,
) -> (Vec<Document>, bool) {
    let (mut skip, mut room, mut more) = (told, most, false);
    let mut results = Vec::new();
    for (id, mut series) in series {
        if series.points.is_empty() {
            if told == 0 {
                results.push(result(id, &series.label, &[], true));
            }
            continue;
        }
        if !ascending {
            series.points.reverse();
        }
        let here = &series.points[skip.min(series.points.len())..];
        skip = skip.saturating_sub(series.points.len());
        let taken = &here[..room.min(here.len())];
        room -= taken.len();
        more |= taken.len() < here.len();
        if !taken.is_empty() {
            results.push(result(id, &series.label, taken, taken.len() == here.len()));
        }
    }
    (results, more)
}

fn result(id: &str, label: &str, points: &[(u64, f64)], complete: bool) -> Document {
    Document::structure([
        ("Id", id.into()),
        ("Label", label.into()),
        ("Timestamps", Document::List(points.iter().map(|(time, _)| Document::timestamp(*time)).collect())),
        ("Values", Document::list(points.iter().map(|(_, value)| *value))),
        ("StatusCode", if complete { "Complete" } else { "PartialData" }.into()),
    ])
}
