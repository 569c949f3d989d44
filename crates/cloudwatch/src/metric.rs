//! What a metric is called by, and the units that its values may have.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The name of a metric within an account: namespace, name and dimensions. A metric with other dimensions is another
/// metric.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Metric {
    /// The account that it belongs to.
    pub account: Arc<str>,
    /// The namespace, such as `AWS/SageMaker`.
    pub namespace: Arc<str>,
    /// The metric's name, such as `Invocations`.
    pub name: Arc<str>,
    dimensions: Vec<Dimension>,
}

/// One dimension of a metric.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Dimension {
    /// Its name, such as `EndpointName`.
    pub name: Arc<str>,
    /// Its value.
    pub value: Arc<str>,
}

impl Metric {
    /// The metric of this name; the order of the dimensions says nothing.
    pub fn new(account: &str, namespace: &str, name: &str, dimensions: Vec<Dimension>) -> Metric {
        let mut dimensions = dimensions;
        dimensions.sort();
        Metric { account: account.into(), namespace: namespace.into(), name: name.into(), dimensions }
    }

    /// Its dimensions, by name.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// What its names take, in bytes.
    pub(crate) fn size(&self) -> usize {
        let dimensions = self.dimensions.iter().map(|dimension| dimension.name.len() + dimension.value.len());
        self.account.len() + self.namespace.len() + self.name.len() + dimensions.sum::<usize>()
    }

    /// The value of a dimension.
    pub fn dimension(&self, name: &str) -> Option<&Arc<str>> {
        self.dimensions.iter().find(|dimension| &*dimension.name == name).map(|dimension| &dimension.value)
    }
}

impl Dimension {
    /// A dimension.
    pub fn new(name: &str, value: &str) -> Dimension {
        Dimension { name: name.into(), value: value.into() }
    }
}

macro_rules! units {
    ($($variant:ident = $word:literal,)*) => {
        /// What a value is measured in; CloudWatch keeps values of different units apart and converts none.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Unit {
            $(#[doc = $word] #[serde(rename = $word)] $variant,)*
        }

        impl Unit {
            /// Every unit.
            pub const ALL: &[Unit] = &[$(Unit::$variant,)*];

            /// The word of the API.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Unit::$variant => $word,)*
                }
            }
        }
    };
}

units! {
    Seconds = "Seconds",
    Microseconds = "Microseconds",
    Milliseconds = "Milliseconds",
    Bytes = "Bytes",
    Kilobytes = "Kilobytes",
    Megabytes = "Megabytes",
    Gigabytes = "Gigabytes",
    Terabytes = "Terabytes",
    Bits = "Bits",
    Kilobits = "Kilobits",
    Megabits = "Megabits",
    Gigabits = "Gigabits",
    Terabits = "Terabits",
    Percent = "Percent",
    Count = "Count",
    BytesPerSecond = "Bytes/Second",
    KilobytesPerSecond = "Kilobytes/Second",
    MegabytesPerSecond = "Megabytes/Second",
    GigabytesPerSecond = "Gigabytes/Second",
    TerabytesPerSecond = "Terabytes/Second",
    BitsPerSecond = "Bits/Second",
    KilobitsPerSecond = "Kilobits/Second",
    MegabitsPerSecond = "Megabits/Second",
    GigabitsPerSecond = "Gigabits/Second",
    TerabitsPerSecond = "Terabits/Second",
    CountPerSecond = "Count/Second",
    None = "None",
}

impl Unit {
    /// The unit of this word.
    pub fn named(word: &str) -> Option<Unit> {
        Unit::ALL.iter().copied().find(|unit| unit.as_str() == word)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_dimensions_says_nothing() {
        let metric = |dimensions| Metric::new("1", "Shop", "Orders", dimensions);
        let a = metric(vec![Dimension::new("City", "Kiel"), Dimension::new("Age", "9")]);
        assert_eq!(a, metric(vec![Dimension::new("Age", "9"), Dimension::new("City", "Kiel")]));
        assert_ne!(a, metric(vec![Dimension::new("Age", "9")]), "a metric with fewer dimensions is another one");
        assert_eq!(a.dimension("City").map(|value| &**value), Some("Kiel"));
    }

    #[test]
    fn units_have_the_words_of_the_api() {
        assert_eq!(Unit::named("Bytes/Second"), Some(Unit::BytesPerSecond));
        assert_eq!(Unit::named("bytes"), None);
        assert_eq!(Unit::ALL.len(), 27);
    }
}
