//! What is asked of metrics: a statistic of one, or an expression over several; and the time series that come of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::expression::{Expression, Fold, Operand};
use crate::{Metric, MetricStore, Statistic, Unit, Window};

/// One query of several, by whose ids expressions refer to each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct MetricQuery {
    pub(crate) id: String,
    pub(crate) label: Option<String>,
    /// Whether the caller wants to see it, or it is only there for expressions.
    pub(crate) returned: bool,
    pub(crate) source: Source,
}

/// Where a query's values come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Source {
    /// A statistic of one metric.
    Stat(MetricStat),
    /// An expression.
    Expression {
        expression: Expression,
        /// The length of periods in seconds, where the expression does not say itself.
        period: Option<u32>,
    },
}

/// A statistic of a metric, by period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct MetricStat {
    pub(crate) metric: Metric,
    pub(crate) statistic: Statistic,
    pub(crate) unit: Option<Unit>,
    /// In seconds.
    pub(crate) period: u32,
}

/// Values over time, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimeSeries {
    pub(crate) label: String,
    pub(crate) points: Vec<(u64, f64)>,
}

/// The period of searches that name none.
const DEFAULT_PERIOD: u32 = 300;

/// The most metrics that a search finds, as CloudWatch has it.
const MOST_FOUND: usize = 500;

impl MetricStat {
    /// Its values between two times.
    pub(crate) fn points(&self, store: &MetricStore, start: u64, end: u64) -> Vec<(u64, f64)> {
        let window = Window::rounded(start, end, self.period.into());
        let periods = store.periods(&self.metric, self.unit, window);
        periods.iter().filter_map(|(time, values)| Some((*time, self.statistic.of(values)?))).collect()
    }
}

/// The queries of one request, checked against each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Queries(Vec<MetricQuery>);

impl Queries {
    /// Checks that ids are distinct and that expressions refer to what is there.
    ///
    /// # Errors
    ///
    /// What is wrong, in words.
    pub(crate) fn new(queries: Vec<MetricQuery>) -> Result<Queries, String> {
        let mut by_id = HashMap::new();
        for query in &queries {
            if by_id.insert(query.id.as_str(), query).is_some() {
                return Err(format!("The id '{}' is used twice: every query needs its own.", query.id));
            }
        }
        for query in &queries {
            let Source::Expression { expression, .. } = &query.source else { continue };
            for id in expression.ids() {
                let found = by_id.get(id.as_str()).ok_or_else(|| {
                    format!("Error in expression '{}': there is no query with the id '{id}'.", query.id)
                })?;
                if matches!(&found.source, Source::Expression { expression, .. } if expression.fold.is_some()) {
                    return Err(format!(
                        "Error in expression '{}': '{id}' is itself computed; name metrics or a SEARCH.",
                        query.id
                    ));
                }
            }
        }
        Ok(Queries(queries))
    }

    /// The queries.
    pub(crate) fn all(&self) -> &[MetricQuery] {
        &self.0
    }

    /// How many of them search.
    pub(crate) fn searches(&self) -> usize {
        let searches = |query: &&MetricQuery| matches!(&query.source, Source::Expression { expression, .. } if matches!(expression.operand, Operand::Search(_)));
        self.0.iter().filter(searches).count()
    }

    /// The longest period among them, in seconds.
    pub(crate) fn period(&self) -> u32 {
        self.0.iter().map(|query| query.period()).max().unwrap_or(DEFAULT_PERIOD)
    }

    /// What a query comes to: one series, or for a search any number.
    pub(crate) fn evaluate(
        &self,
        query: &MetricQuery,
        store: &MetricStore,
        account: &str,
        span: (u64, u64),
    ) -> Vec<TimeSeries> {
        let label = |default: String| query.label.clone().unwrap_or(default);
        match &query.source {
            Source::Stat(stat) => {
                let label = label(stat.metric.name.to_string());
                vec![TimeSeries { label, points: stat.points(store, span.0, span.1) }]
            }
            Source::Expression { expression: Expression { fold, operand, .. }, .. } => {
                let series = self.operands(operand, query.period(), store, account, span);
                match fold {
                    Some(fold) => vec![folded(*fold, &series, label(query.id.clone()))],
                    None => series,
                }
            }
        }
    }

    fn operands(
        &self,
        operand: &Operand,
        period: u32,
        store: &MetricStore,
        account: &str,
        span: (u64, u64),
    ) -> Vec<TimeSeries> {
        match operand {
            Operand::Search(search) => {
                let found = store.metrics_of(account, None).map(|(metric, _)| metric);
                let found = found.filter(|metric| search.finds(metric));
                let series = found.take(MOST_FOUND).map(|metric| {
                    let (metric, statistic) = (metric.clone(), search.statistic);
                    let label = label_of(&metric);
                    let stat = MetricStat { metric, statistic, unit: None, period: search.period.unwrap_or(period) };
                    TimeSeries { label, points: stat.points(store, span.0, span.1) }
                });
                series.collect()
            }
            Operand::Metrics(part) => {
                let is_meant = |query: &&MetricQuery| {
                    matches!(query.source, Source::Stat(_)) && part.as_ref().is_none_or(|part| query.id.contains(part))
                };
                let meant = self.0.iter().filter(is_meant);
                meant.flat_map(|query| self.evaluate(query, store, account, span)).collect()
            }
            Operand::Ids(ids) => {
                let named = self.0.iter().filter(|query| ids.contains(&query.id));
                named.flat_map(|query| self.evaluate(query, store, account, span)).collect()
            }
        }
    }
}

impl MetricQuery {
    /// The length of its periods in seconds.
    fn period(&self) -> u32 {
        match &self.source {
            Source::Stat(stat) => stat.period,
            Source::Expression { expression, period } => match &expression.operand {
                Operand::Search(search) => search.period.or(*period).unwrap_or(DEFAULT_PERIOD),
                Operand::Metrics(_) | Operand::Ids(_) => period.unwrap_or(0),
            },
        }
    }
}

/// One series out of several, point by point; where a series has no value it does not count.
fn folded(fold: Fold, series: &[TimeSeries], label: String) -> TimeSeries {
    let mut at: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (time, value) in series.iter().flat_map(|series| &series.points) {
        at.entry(*time).or_default().push(*value);
    }
    TimeSeries { label, points: at.into_iter().map(|(time, values)| (time, fold.of(&values))).collect() }
}

/// How a found metric is told from the others: its dimensions' values, then its name.
fn label_of(metric: &Metric) -> String {
    let values = metric.dimensions().iter().map(|dimension| &dimension.value);
    values.chain([&metric.name]).map(Arc::as_ref).collect::<Vec<&str>>().join(" ")
}
