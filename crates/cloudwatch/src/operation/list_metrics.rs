//! `ListMetrics`.

use std::sync::Arc;

use super::{Call, check, metric_document, namespace, place, token};
use crate::document::Document;
use crate::input::{Input, Violations};
use crate::{CloudWatch, Metric, Refusal};

/// The most metrics of one answer, as CloudWatch has it.
const PAGE: usize = 500;

/// `RecentlyActive: PT3H`, in seconds.
const RECENTLY: u64 = 3 * 3600;

/// The account's metrics that have values, or those that fit the request.
pub(crate) fn list_metrics(cloudwatch: &CloudWatch, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let namespace = namespace(&input);
    let name = input.text("MetricName", 1..=255);
    let filters: Vec<(&str, Option<&str>)> = input
        .structures("Dimensions", 0..=10)
        .iter()
        .map(|filter| (filter.required_text("Name", 1..=255), filter.text("Value", 1..=1024)))
        .collect();
    let recently = input.word("RecentlyActive", &["PT3H"], |word| (word == "PT3H").then_some(RECENTLY));
    check(&violations)?;
    let after: Option<Metric> = place(&input)?;

    let fits = |metric: &Metric, newest: u64| {
        let value = |name: &str| metric.dimension(name).map(Arc::as_ref);
        namespace.is_none_or(|namespace| namespace == &*metric.namespace)
            && name.is_none_or(|name| name == &*metric.name)
            && recently.is_none_or(|seconds| newest + seconds >= call.now)
            && filters.iter().all(|(name, wanted)| {
                value(name).is_some_and(|value: &str| wanted.is_none_or(|wanted| wanted == value))
            })
    };
    let store = cloudwatch.metrics();
    let mut found =
        store.metrics_of(&call.caller.account, after.as_ref()).filter(|(metric, newest)| fits(metric, *newest));
    let page: Vec<&Metric> = found.by_ref().take(PAGE).map(|(metric, _)| metric).collect();
    let next = match (found.next(), page.last()) {
        (Some(_), Some(last)) => Some(token(last)?),
        _ => None,
    };
    let metrics = Document::List(page.into_iter().map(metric_document).collect());
    Ok(Document::structure([("Metrics", metrics), ("NextToken", next.into())]))
}
