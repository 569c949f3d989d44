//! The statistics that can be asked for.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Summary;

/// One figure of a period's values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Statistic {
    /// How many values there are.
    SampleCount,
    /// Their mean.
    Average,
    /// Their sum.
    Sum,
    /// The least.
    Minimum,
    /// The greatest.
    Maximum,
    /// The value at or below which this percentage of them lies, 0 to 100.
    Percentile(f64),
}

impl Statistic {
    /// Those that are no percentiles.
    pub const SIMPLE: &[Statistic] =
        &[Statistic::SampleCount, Statistic::Average, Statistic::Sum, Statistic::Minimum, Statistic::Maximum];

    /// The words for people.
    pub const WORDS: &str = "SampleCount, Average, Sum, Minimum, Maximum and percentiles such as p99.9";

    /// The statistic of this word: `Sum`, `p99.9` and so on.
    pub fn named(word: &str) -> Option<Statistic> {
        let simple = Statistic::SIMPLE.iter().find(|statistic| statistic.word() == word);
        simple.copied().or_else(|| Statistic::percentile(word))
    }

    /// The percentile of this word: `p` and 0 to 100.
    pub fn percentile(word: &str) -> Option<Statistic> {
        let digits = word.strip_prefix('p')?;
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit());
        let percent: f64 = digits.parse().ok().filter(|_| is_number)?;
        (0.0..=100.0).contains(&percent).then_some(Statistic::Percentile(percent))
    }

    /// The figure; `None` where it can't be told of these values.
    pub fn of(self, values: &Summary) -> Option<f64> {
        match self {
            Statistic::SampleCount => Some(values.count()),
            Statistic::Average => Some(values.average()),
            Statistic::Sum => Some(values.sum()),
            Statistic::Minimum => Some(values.minimum()),
            Statistic::Maximum => Some(values.maximum()),
            Statistic::Percentile(percent) => values.percentile(percent),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Statistic::SampleCount => "SampleCount",
            Statistic::Average => "Average",
            Statistic::Sum => "Sum",
            Statistic::Minimum => "Minimum",
            Statistic::Maximum => "Maximum",
            Statistic::Percentile(_) => "p",
        }
    }
}

impl TryFrom<String> for Statistic {
    type Error = String;

    fn try_from(word: String) -> Result<Statistic, String> {
        Statistic::named(&word).ok_or_else(|| format!("{word:?} is no statistic: there are {}", Statistic::WORDS))
    }
}

impl From<Statistic> for String {
    fn from(statistic: Statistic) -> String {
        statistic.to_string()
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statistic::Percentile(percent) => write!(f, "p{percent}"),
            simple => f.pad(simple.word()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_statistics() {
        for word in ["SampleCount", "Average", "Sum", "Minimum", "Maximum", "p99", "p99.9", "p0", "p100"] {
            assert_eq!(Statistic::named(word).map(|statistic| statistic.to_string()).as_deref(), Some(word));
        }
        for word in ["", "p", "p101", "p-1", "pNaN", "sum", "tm99", "IQM", "P50", "p+5"] {
            assert_eq!(Statistic::named(word), None, "{word}");
        }
    }
}
