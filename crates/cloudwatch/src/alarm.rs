//! An alarm: what it watches, when it goes off, and how it stands.

mod book;
mod evaluate;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use self::book::Alarms;
pub(crate) use self::evaluate::{Verdict, evaluate};
use crate::query::{MetricStat, Queries, Source};
use crate::{MetricStore, Window};

/// An alarm as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Alarm {
    pub(crate) name: String,
    pub(crate) arn: String,
    pub(crate) description: Option<String>,
    /// Whether its actions count; they are kept and shown, and only scaling policies act on them.
    pub(crate) actions_enabled: bool,
    pub(crate) ok_actions: Vec<String>,
    pub(crate) alarm_actions: Vec<String>,
    pub(crate) insufficient_data_actions: Vec<String>,
    pub(crate) watched: Watched,
    pub(crate) rule: Rule,
    #[serde(default)]
    pub(crate) tags: BTreeMap<String, String>,
    /// When it was last put, in seconds of Unix time.
    pub(crate) configured: u64,
    pub(crate) standing: Standing,
}

/// What an alarm watches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Watched {
    /// A statistic of one metric.
    Stat(MetricStat),
    /// What several queries come to: the one that is returned.
    Queries(Queries),
}

/// When an alarm goes off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rule {
    /// How many periods are looked at.
    pub(crate) evaluation_periods: u32,
    /// How many of them must breach the threshold, where that was said; else all.
    pub(crate) datapoints_to_alarm: Option<u32>,
    pub(crate) threshold: f64,
    pub(crate) comparison: Comparison,
    pub(crate) missing_data: Option<MissingData>,
}

macro_rules! words {
    ($(#[$of_enum:meta])* $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$of_enum])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$of_variant])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every word.
            pub const WORDS: &[&str] = &[$($word,)*];

            /// The word of the API.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }

            /// What the word means.
            pub fn named(word: &str) -> Option<$name> {
                match word {
                    $($word => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// How a value breaches a threshold.
    Comparison {
        /// By being as great or greater.
        AtLeast = "GreaterThanOrEqualToThreshold",
        /// By being greater.
        Above = "GreaterThanThreshold",
        /// By being less.
        Below = "LessThanThreshold",
        /// By being as little or less.
        AtMost = "LessThanOrEqualToThreshold",
    }
}

words! {
    /// What a period without values counts as.
    MissingData {
        /// As one that breaches the threshold.
        Breaching = "breaching",
        /// As one that does not.
        NotBreaching = "notBreaching",
        /// The alarm stays as it is.
        Ignore = "ignore",
        /// As unknown.
        Missing = "missing",
    }
}

words! {
    /// How an alarm stands.
    AlarmState {
        /// The threshold is not breached.
        Ok = "OK",
        /// It is.
        Alarm = "ALARM",
        /// There are too few values to say.
        InsufficientData = "INSUFFICIENT_DATA",
    }
}

/// How an alarm stands, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Standing {
    pub(crate) state: AlarmState,
    pub(crate) reason: String,
    /// JSON.
    pub(crate) reason_data: Option<String>,
    /// When this was last found or set.
    pub(crate) updated: u64,
    /// Since when it stands so.
    pub(crate) since: u64,
    /// The end of the last span that was looked at; `None` before the first.
    #[serde(skip)]
    pub(crate) evaluated_to: Option<u64>,
    /// Until when a state that was set by hand stands, whatever the values are.
    #[serde(skip)]
    pub(crate) held_until: u64,
}

/// An alarm that has gone off, to whom its action is.
#[derive(Debug, Clone, PartialEq)]
pub struct CallingAlarm {
    /// Its name.
    pub name: String,
    /// Its ARN.
    pub arn: String,
    /// By how much the last value that was looked at exceeds the threshold; negative where it is below. `None` where a
    /// state that was set by hand does not tell the value.
    pub excess: Option<f64>,
}

impl CallingAlarm {
    pub(crate) fn of(alarm: &Alarm) -> CallingAlarm {
        let data: Option<serde_json::Value> =
            alarm.standing.reason_data.as_deref().and_then(|data| serde_json::from_str(data).ok());
        let values = data.as_ref().and_then(|data| data["recentDatapoints"].as_array());
        let last = values.and_then(|values| values.last()).and_then(serde_json::Value::as_f64);
        CallingAlarm {
            name: alarm.name.clone(),
            arn: alarm.arn.clone(),
            excess: last.map(|value| value - alarm.rule.threshold),
        }
    }
}

impl Comparison {
    /// Whether the value breaches the threshold.
    pub(crate) fn breaches(self, value: f64, threshold: f64) -> bool {
        match self {
            Comparison::AtLeast => value >= threshold,
            Comparison::Above => value > threshold,
            Comparison::Below => value < threshold,
            Comparison::AtMost => value <= threshold,
        }
    }

    /// As it reads in a sentence.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Comparison::AtLeast => "greater than or equal to",
            Comparison::Above => "greater than",
            Comparison::Below => "less than",
            Comparison::AtMost => "less than or equal to",
        }
    }
}

impl Watched {
    /// The length of a period in seconds.
    pub(crate) fn period(&self) -> u64 {
        match self {
            Watched::Stat(stat) => stat.period.into(),
            Watched::Queries(queries) => queries.period().max(10).into(),
        }
    }

    /// The statistic's name, where there is one.
    pub(crate) fn statistic(&self) -> Option<String> {
        match self {
            Watched::Stat(stat) => Some(stat.statistic.to_string()),
            Watched::Queries(_) => None,
        }
    }

    /// The values of the periods of a window, oldest first.
    pub(crate) fn values(&self, store: &MetricStore, account: &str, window: Window) -> Vec<Option<f64>> {
        let points = match self {
            Watched::Stat(stat) => stat.points(store, window.start, window.end),
            Watched::Queries(queries) => {
                let returned = queries.all().iter().find(|query| query.returned);
                let series = returned.map(|query| queries.evaluate(query, store, account, (window.start, window.end)));
                series.into_iter().flatten().next().map(|series| series.points).unwrap_or_default()
            }
        };
        let mut values = vec![None; window.periods() as usize];
        for (time, value) in points {
            let place = (time.saturating_sub(window.start) / window.period) as usize;
            if let Some(slot) = values.get_mut(place) {
                *slot = Some(value);
            }
        }
        values
    }

    /// Why it can't be watched, if it can't.
    pub(crate) fn objection(&self) -> Option<&'static str> {
        let Watched::Queries(queries) = self else { return None };
        let returned: Vec<_> = queries.all().iter().filter(|query| query.returned).collect();
        match returned[..] {
            [one] => match &one.source {
                Source::Expression { expression, .. } if expression.fold.is_none() => {
                    Some("an alarm watches one time series: wrap METRICS() in SUM, AVG, MIN or MAX")
                }
                _ => None,
            },
            _ => Some("exactly one of the Metrics must have ReturnData true"),
        }
    }
}

impl Rule {
    /// How many periods must breach the threshold.
    pub(crate) fn needed(&self) -> u32 {
        self.datapoints_to_alarm.unwrap_or(self.evaluation_periods)
    }
}
