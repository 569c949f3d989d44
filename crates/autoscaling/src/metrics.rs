//! What a policy's metric was lately.

use isotherm_cloudwatch::{Dimension, Metric, MetricStore, Statistic, Window};

use crate::record::{PredefinedMetric, TrackedMetric};
use crate::resource::{Owner, Resource};

/// A metric by which something is scaled, and how it is summed up.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gauge {
    pub(crate) metric: Metric,
    pub(crate) statistic: Statistic,
    /// In seconds.
    pub(crate) period: u64,
}

impl Gauge {
    /// What a policy of this resource looks at.
    pub(crate) fn of(tracked: &TrackedMetric, owner: &Owner, resource: &Resource) -> Gauge {
        let predefined = |name, statistic, period| {
            let metric = Metric::new(&owner.account, "AWS/SageMaker", name, dimensions(resource));
            Gauge { metric, statistic, period }
        };
        match tracked {
            TrackedMetric::Predefined(PredefinedMetric::InvocationsPerInstance) => {
                predefined("InvocationsPerInstance", Statistic::Sum, 60)
            }
            TrackedMetric::Predefined(PredefinedMetric::InvocationsPerCopy) => {
                predefined("InvocationsPerCopy", Statistic::Sum, 60)
            }
            TrackedMetric::Predefined(PredefinedMetric::ConcurrencyPerInstance) => {
                predefined("ConcurrentRequestsPerModel", Statistic::Average, 10)
            }
            TrackedMetric::Predefined(PredefinedMetric::ConcurrencyPerCopy) => {
                predefined("ConcurrentRequestsPerCopy", Statistic::Average, 10)
            }
            TrackedMetric::Customized { metric, statistic } => {
                Gauge { metric: metric.clone(), statistic: *statistic, period: 60 }
            }
        }
    }

    /// Its values in the periods of the last `span` seconds that have ended, the last one last.
    pub(crate) fn values(&self, metrics: &MetricStore, span: u64, now: u64) -> Vec<Option<f64>> {
        let end = now - now % self.period;
        let periods = span.div_ceil(self.period).max(1);
        let window = Window { start: end.saturating_sub(periods * self.period), end, period: self.period };
        let mut values = vec![None; window.periods() as usize];
        for (time, summary) in metrics.periods(&self.metric, None, window) {
            let place = ((time - window.start) / self.period) as usize;
            values[place] = self.statistic.of(&summary);
        }
        values
    }
}

fn dimensions(resource: &Resource) -> Vec<Dimension> {
    match resource {
        Resource::Variant { endpoint, variant } => {
            vec![Dimension::new("EndpointName", endpoint), Dimension::new("VariantName", variant)]
        }
        Resource::Component { name } => vec![Dimension::new("InferenceComponentName", name)],
    }
}

#[cfg(test)]
mod tests {
    use isotherm_cloudwatch::{Limits, Resolution, Summary, Unit};

    use super::*;

    #[test]
    fn only_periods_that_have_ended_count() {
        let owner = Owner { account: "123456789012".to_owned(), region: "r".to_owned() };
        let resource = Resource::Variant { endpoint: "chat".to_owned(), variant: "a".to_owned() };
        let gauge = Gauge::of(&TrackedMetric::Predefined(PredefinedMetric::ConcurrencyPerInstance), &owner, &resource);
        let mut metrics = MetricStore::new(Limits::default());
        for (time, value) in [(1000, 1.0), (1005, 3.0), (1020, 5.0), (1030, 9.0)] {
            let (unit, values) = (Unit::Count, Summary::of(value));
            metrics.record(&gauge.metric, unit, Resolution::High, time, &values).expect("room");
        }
        assert_eq!(gauge.values(&metrics, 30, 1034), [Some(2.0), None, Some(5.0)]);
    }
}
