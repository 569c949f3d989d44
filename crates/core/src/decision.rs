//! A decision: which instance was chosen, why, and what was known when it was.

use serde::{Deserialize, Serialize};

use crate::{Generation, InstanceId, PrefixKey, Slot, StrategyName};

/// The outcome of choosing: the decision, the slot that was counted for it, and what the caller keeps with the instance.
#[derive(Debug)]
pub struct Choice<T> {
    /// What was decided and why.
    pub decision: Decision,
    /// The place in the chosen instance's in-flight count; give it back with `VariantState::finish`.
    pub slot: Slot,
    /// What the caller stored with the chosen instance when adding it.
    pub instance: T,
}

/// Why one request went where it went.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The variant's strategy.
    pub strategy: StrategyName,
    /// Whether the strategy or, in a partial rollout, chance decided.
    pub arm: Arm,
    /// The request's key; `None` where the strategy needs none or the request has no text.
    pub key: Option<PrefixKey>,
    /// The instance that the key prefers among the eligible ones.
    pub home: Option<InstanceId>,
    /// Requests in flight on the home before this one was counted.
    pub home_in_flight: Option<u32>,
    /// The chosen instance.
    pub chosen: InstanceId,
    /// The chosen instance's life.
    pub generation: Generation,
    /// Requests in flight on the chosen instance, this one included.
    pub in_flight: u32,
    /// Why this instance.
    pub reason: Reason,
    /// What made a `spill` leave its home.
    pub cause: Option<SpillCause>,
    /// The chosen instance's place in the key's order of the eligible instances; 0 is home. `None` without a key.
    pub place: Option<u32>,
    /// How many instances were eligible.
    pub eligible: u32,
    /// Tokens of the prompt that the chosen instance is believed to hold; `None` where the strategy believes nothing.
    pub expected_cached_tokens: Option<u64>,
}

/// Why an instance was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is the key's home.
    Home,
    /// The home is full; this one is not.
    Spill,
    /// Every instance is at the concurrency threshold; this one is the first in the key's order within the load bound.
    Saturated,
    /// It is the only eligible one.
    Single,
    /// The request belongs to a session or a stored response that lives there.
    Session,
    /// Chance.
    Random,
    /// It was its turn.
    RoundRobin,
    /// It had the fewest requests in flight.
    LeastOutstanding,
    /// `ADAPTIVE`: it adds the least latency, and holds some of the prompt.
    Warm,
    /// `ADAPTIVE`: it adds the least latency, and holds nothing of the prompt.
    Cold,
    /// An earlier choice failed before it answered.
    Retry,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 11] = [
        Reason::Home,
        Reason::Spill,
        Reason::Saturated,
        Reason::Single,
        Reason::Session,
        Reason::Random,
        Reason::RoundRobin,
        Reason::LeastOutstanding,
        Reason::Warm,
        Reason::Cold,
        Reason::Retry,
    ];

    /// The word in headers, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Home => "home",
            Reason::Spill => "spill",
            Reason::Saturated => "saturated",
            Reason::Single => "single",
            Reason::Session => "session",
            Reason::Random => "random",
            Reason::RoundRobin => "round_robin",
            Reason::LeastOutstanding => "least_outstanding",
            Reason::Warm => "warm",
            Reason::Cold => "cold",
            Reason::Retry => "retry",
        }
    }
}

/// What made a home full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpillCause {
    /// As many requests in flight as the concurrency threshold.
    Threshold,
    /// As many requests in flight as the instance's own bound.
    MaxInFlight,
}

impl SpillCause {
    /// Every cause.
    pub const ALL: [SpillCause; 2] = [SpillCause::Threshold, SpillCause::MaxInFlight];

    /// The word in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            SpillCause::Threshold => "threshold",
            SpillCause::MaxInFlight => "max_in_flight",
        }
    }
}

/// The two sides of a partial rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The variant's strategy decided.
    Strategy,
    /// Chance decided, for comparison.
    Random,
}

impl Arm {
    /// Both arms.
    pub const ALL: [Arm; 2] = [Arm::Strategy, Arm::Random];

    /// The word in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Arm::Strategy => "strategy",
            Arm::Random => "random",
        }
    }
}

/// Why no instance could be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The variant has no instance at all, or only draining ones.
    #[error("no instance is in service")]
    NoInstance,
    /// Every instance that could serve the request is down, or failed it already.
    #[error("no instance is available")]
    Unavailable,
    /// Every eligible instance has as many requests in flight as its own bound allows; one of them may free a slot.
    #[error("every instance is at max_in_flight")]
    Full,
    /// Every instance lists its models, and none lists this one.
    #[error("no instance serves the model")]
    ModelNotFound,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_headers_metrics_and_logs_stay_what_they_are() {
        let reasons = "home spill saturated single session random round_robin least_outstanding warm cold retry";
        assert_eq!(Reason::ALL.map(Reason::as_str).join(" "), reasons);
        assert_eq!(SpillCause::ALL.map(SpillCause::as_str), ["threshold", "max_in_flight"]);
        assert_eq!(Arm::ALL.map(Arm::as_str), ["strategy", "random"]);
    }
}
