//! Targets, policies and activities as they are kept.

use std::collections::BTreeMap;

use isotherm_cloudwatch::{Metric, Statistic};
use serde::{Deserialize, Serialize};

use crate::resource::{Owner, Resource};

/// A resource that may be scaled, and within which bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) owner: Owner,
    pub(crate) resource: Resource,
    pub(crate) arn: String,
    pub(crate) minimum: u32,
    pub(crate) maximum: u32,
    pub(crate) role_arn: String,
    pub(crate) suspended: Suspended,
    pub(crate) tags: BTreeMap<String, String>,
    /// When it was registered, in seconds of Unix time.
    pub(crate) created: u64,
    /// The last change out and the last change in, from which cool-downs are counted.
    #[serde(default)]
    pub(crate) last_out: Option<Change>,
    #[serde(default)]
    pub(crate) last_in: Option<Change>,
}

/// What is not done on a target for the time being.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Suspended {
    pub(crate) scaling_in: bool,
    pub(crate) scaling_out: bool,
    pub(crate) scheduled: bool,
}

/// A change of capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// When, in seconds of Unix time.
    pub(crate) at: u64,
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// A scaling policy of a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Policy {
    pub(crate) owner: Owner,
    pub(crate) resource: Resource,
    pub(crate) name: String,
    pub(crate) arn: String,
    pub(crate) created: u64,
    /// When it was last put: before, its metric was not looked at.
    pub(crate) updated: u64,
    pub(crate) kind: PolicyKind,
    /// The names of the alarms that were made for it.
    #[serde(default)]
    pub(crate) alarms: Vec<String>,
}

/// How a policy scales.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum PolicyKind {
    TargetTracking(TargetTracking),
    Steps(Steps),
}

/// Keeps a metric at a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TargetTracking {
    pub(crate) target_value: f64,
    pub(crate) metric: TrackedMetric,
    /// In seconds.
    pub(crate) scale_out_cooldown: u32,
    /// In seconds.
    pub(crate) scale_in_cooldown: u32,
    pub(crate) disable_scale_in: bool,
}

/// What a policy tracks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum TrackedMetric {
    Predefined(PredefinedMetric),
    /// A metric of the caller's, by the minute.
    Customized {
        metric: Metric,
        statistic: Statistic,
    },
}

/// The metrics that SageMaker's resources are scaled by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PredefinedMetric {
    /// Requests per minute and instance.
    InvocationsPerInstance,
    /// Requests under way per instance.
    ConcurrencyPerInstance,
    /// Requests per minute and copy.
    InvocationsPerCopy,
    /// Requests under way per copy.
    ConcurrencyPerCopy,
}

/// Changes the capacity by steps when an alarm goes off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Steps {
    pub(crate) adjustment: Adjustment,
    pub(crate) steps: Vec<Step>,
    pub(crate) least_change: Option<u32>,
    /// In seconds.
    pub(crate) cooldown: u32,
    /// Kept and told; there is one way in which alarms aggregate here, their own.
    pub(crate) aggregation: Option<String>,
}

/// What a step's figure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Adjustment {
    /// So many more or, if negative, less.
    By,
    /// So many percent more or less.
    ByPercent,
    /// So many.
    To,
}

/// One step: from which excess over the alarm's threshold to which, and what then.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) lower: Option<f64>,
    pub(crate) upper: Option<f64>,
    pub(crate) adjustment: i32,
}

/// A change that was made, or tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Activity {
    pub(crate) id: String,
    pub(crate) description: String,
    pub(crate) cause: String,
    pub(crate) start: u64,
    pub(crate) end: Option<u64>,
    pub(crate) status: ActivityStatus,
    pub(crate) message: Option<String>,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ActivityStatus {
    /// Wanted, and not there yet.
    InProgress,
    /// There.
    Successful,
    /// Another change came before it was there.
    Overridden,
    /// It could not be.
    Failed,
}

impl PredefinedMetric {
    const ALL: [(PredefinedMetric, &'static str); 4] = [
        (PredefinedMetric::InvocationsPerInstance, "SageMakerVariantInvocationsPerInstance"),
        (PredefinedMetric::ConcurrencyPerInstance, "SageMakerVariantConcurrentRequestsPerModelHighResolution"),
        (PredefinedMetric::InvocationsPerCopy, "SageMakerInferenceComponentInvocationsPerCopy"),
        (PredefinedMetric::ConcurrencyPerCopy, "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"),
    ];

    /// The metric of this word of the API.
    pub(crate) fn named(word: &str) -> Option<PredefinedMetric> {
        PredefinedMetric::ALL.into_iter().find(|(_, known)| *known == word).map(|(metric, _)| metric)
    }

    /// The word of the API.
    pub(crate) fn as_str(self) -> &'static str {
        PredefinedMetric::ALL.into_iter().find(|(metric, _)| *metric == self).map_or("", |(_, word)| word)
    }

    /// Those that scale a resource.
    pub(crate) fn of(resource: &Resource) -> [PredefinedMetric; 2] {
        match resource {
            Resource::Variant { .. } => {
                [PredefinedMetric::InvocationsPerInstance, PredefinedMetric::ConcurrencyPerInstance]
            }
            Resource::Component { .. } => [PredefinedMetric::InvocationsPerCopy, PredefinedMetric::ConcurrencyPerCopy],
        }
    }
}

impl Adjustment {
    /// Every word of the API.
    pub(crate) const WORDS: [&'static str; 3] = ["ChangeInCapacity", "PercentChangeInCapacity", "ExactCapacity"];

    /// What the word means.
    pub(crate) fn named(word: &str) -> Option<Adjustment> {
        match word {
            "ChangeInCapacity" => Some(Adjustment::By),
            "PercentChangeInCapacity" => Some(Adjustment::ByPercent),
            "ExactCapacity" => Some(Adjustment::To),
            _ => None,
        }
    }

    /// The word of the API.
    pub(crate) fn as_str(self) -> &'static str {
        Adjustment::WORDS[self as usize]
    }
}

impl ActivityStatus {
    /// The word of the API.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ActivityStatus::InProgress => "InProgress",
            ActivityStatus::Successful => "Successful",
            ActivityStatus::Overridden => "Overridden",
            ActivityStatus::Failed => "Failed",
        }
    }
}
