//! What is kept of the values of a metric in one span of time.

use super::sketch::Sketch;

/// The values of a span: their number, sum and extremes, and how they are distributed.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    count: f64,
    sum: f64,
    minimum: f64,
    maximum: f64,
    distribution: Distribution,
}

#[derive(Debug, Clone, PartialEq)]
enum Distribution {
    /// All values are the minimum.
    Single,
    /// Several values.
    Known(Box<Sketch>),
    /// The values came as a statistic set: only its figures are known.
    Unknown,
}

impl Summary {
    /// One value.
    pub fn of(value: f64) -> Summary {
        Summary::repeated(value, 1.0)
    }

    /// A value that occurred `count` times.
    pub fn repeated(value: f64, count: f64) -> Summary {
        let distribution = Distribution::Single;
        Summary { count, sum: value * count, minimum: value, maximum: value, distribution }
    }

    /// Values that somebody else summed up. Percentiles can be told of them only if they are all equal.
    pub fn from_statistics(count: f64, sum: f64, minimum: f64, maximum: f64) -> Summary {
        let distribution = if minimum == maximum { Distribution::Single } else { Distribution::Unknown };
        Summary { count, sum, minimum, maximum, distribution }
    }

    /// The values with their counts; `None` when there are none.
    pub fn of_values(values: impl IntoIterator<Item = (f64, f64)>) -> Option<Summary> {
        let summaries = values.into_iter().map(|(value, count)| Summary::repeated(value, count));
        summaries.reduce(|mut all, next| {
            all.merge(&next);
            all
        })
    }

    /// The same values with their true sum, where the values themselves are rounded to buckets.
    pub fn with_sum(self, sum: f64) -> Summary {
        Summary { sum, ..self }
    }

    /// Takes the values of another span in.
    pub fn merge(&mut self, other: &Summary) {
        self.distribution = self.distribution_with(other);
        self.count += other.count;
        self.sum += other.sum;
        self.minimum = self.minimum.min(other.minimum);
        self.maximum = self.maximum.max(other.maximum);
    }

    /// How many values there are; CloudWatch allows fractions.
    pub fn count(&self) -> f64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Their mean.
    pub fn average(&self) -> f64 {
        self.sum / self.count
    }

    /// The least of them.
    pub fn minimum(&self) -> f64 {
        self.minimum
    }

    /// The greatest of them.
    pub fn maximum(&self) -> f64 {
        self.maximum
    }

    /// The value at or below which `percent` of the values lie, to within 2.5 %; `None` where the values came as
    /// statistics only.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        match &self.distribution {
            Distribution::Single => Some(self.minimum),
            Distribution::Known(sketch) => {
                sketch.quantile(percent / 100.0).map(|value| value.clamp(self.minimum, self.maximum))
            }
            Distribution::Unknown => None,
        }
    }

    /// What it takes to keep it, in cells of about 50 bytes.
    pub(super) fn cells(&self) -> usize {
        match &self.distribution {
            Distribution::Single | Distribution::Unknown => 1,
            Distribution::Known(sketch) => 2 + sketch.len() / 6,
        }
    }

    fn distribution_with(&mut self, other: &Summary) -> Distribution {
        let same = self.minimum == other.minimum;
        match (&mut self.distribution, &other.distribution) {
            (Distribution::Single, Distribution::Single) if same => Distribution::Single,
            (Distribution::Unknown, _) | (_, Distribution::Unknown) => Distribution::Unknown,
            (Distribution::Known(own), _) => {
                let mut sketch = std::mem::take(own);
                other.add_to(&mut sketch);
                Distribution::Known(sketch)
            }
            (Distribution::Single, _) => {
                let mut sketch = Box::default();
                self.add_to(&mut sketch);
                other.add_to(&mut sketch);
                Distribution::Known(sketch)
            }
        }
    }

    fn add_to(&self, sketch: &mut Sketch) {
        match &self.distribution {
            Distribution::Single => sketch.add(self.minimum, self.count),
            Distribution::Known(own) => sketch.merge(own),
            Distribution::Unknown => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_add_up() {
        let summary = Summary::of_values([(2.0, 1.0), (4.0, 3.0), (10.0, 1.0)]).expect("values");
        let figures = (summary.count(), summary.sum(), summary.average(), summary.minimum(), summary.maximum());
        assert_eq!(figures, (5.0, 24.0, 4.8, 2.0, 10.0));
        let median = summary.percentile(50.0).expect("known values");
        assert!((median / 4.0 - 1.0).abs() < 0.0251, "{median}");
        assert_eq!(summary.percentile(100.0), Some(10.0), "never beyond the greatest value");
        assert_eq!(Summary::of_values([]), None);
    }

    #[test]
    fn percentiles_of_statistics_are_told_only_where_they_are_certain() {
        assert_eq!(Summary::from_statistics(4.0, 12.0, 3.0, 3.0).percentile(90.0), Some(3.0));
        let mut unknown = Summary::from_statistics(4.0, 12.0, 1.0, 5.0);
        assert_eq!(unknown.percentile(90.0), None);
        unknown.merge(&Summary::of(9.0));
        assert_eq!((unknown.percentile(90.0), unknown.maximum(), unknown.count()), (None, 9.0, 5.0));
    }

    #[test]
    fn equal_values_cost_no_more_than_one() {
        let mut same = Summary::of(7.0);
        for _ in 0..1000 {
            same.merge(&Summary::of(7.0));
        }
        assert_eq!((same.cells(), same.percentile(99.0), same.count()), (1, Some(7.0), 1001.0));
    }
}
