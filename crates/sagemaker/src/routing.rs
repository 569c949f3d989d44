//! From SageMaker's `RoutingConfig` to the strategy that runs.
//!
//! Strategies that SageMaker does not know are asked for beside its model: by the tag [`STRATEGY_TAG`] of an endpoint
//! configuration (for all its variants), or by [`STRATEGY_VARIABLE`] in the environment of a model's or component's
//! container, which beats the tag. Both beat `RoutingConfig`. What `PREFIX_AWARE` makes a key of is asked for by the tags
//! [`CANONICAL_TAG`] and [`BREAKPOINTS_TAG`]; how many requests an instance has at a time, by [`BOUND_TAG`] or
//! [`BOUND_VARIABLE`].

use std::num::NonZeroU32;

use isotherm_core::{
    ConcurrencyThreshold, PrefixAware, PrefixLength, Rollout, Routing, SpillRule, Strategy, StrategyName,
};
use serde::{Deserialize, Serialize};

use crate::records::{ComponentPlan, VariantRecord};
use crate::shapes::{Environment, PrefixAwareRouting, RoutingConfig, RoutingStrategy, Tag};

/// The tag of an endpoint configuration that asks for `ROUND_ROBIN` or `ADAPTIVE`.
pub const STRATEGY_TAG: &str = "isotherm:routing-strategy";

/// The tag of an endpoint configuration that says `true` where native JSON bodies are keyed by their canonical form.
pub const CANONICAL_TAG: &str = "isotherm:canonical-json";

/// The tag of an endpoint configuration that says `false` where clients' breakpoints end no prefix.
pub const BREAKPOINTS_TAG: &str = "isotherm:client-breakpoints";

/// The environment variable of a container that asks for `ROUND_ROBIN` or `ADAPTIVE`.
pub const STRATEGY_VARIABLE: &str = "ISOTHERM_ROUTING_STRATEGY";

/// The tag of an endpoint configuration that bounds what is in flight on each instance or copy; the rest waits in the
/// variant's or component's queue.
pub const BOUND_TAG: &str = "isotherm:max-in-flight";

/// The environment variable of a container that does the same for that model alone.
pub const BOUND_VARIABLE: &str = "ISOTHERM_MAX_IN_FLIGHT";

/// What a container's environment says to the router alone: a change of it starts no instance anew.
pub const VARIABLES: [&str; 2] = [STRATEGY_VARIABLE, BOUND_VARIABLE];

/// The highest bound, as in the configuration file.
const HIGHEST_BOUND: u32 = 1_000_000;

/// How requests find their instance of a variant.
pub fn of_variant(variant: &VariantRecord) -> Routing {
    full(strategy(variant.strategy, variant.config.routing_config.as_ref(), variant.keying))
}

/// How requests find their copy of an inference component that the variant hosts.
pub fn of_component(component: &ComponentPlan, variant: &VariantRecord) -> Routing {
    full(strategy(component.strategy.or(variant.strategy), variant.config.routing_config.as_ref(), variant.keying))
}

/// What `PREFIX_AWARE` makes a key of, beside SageMaker's parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Keying {
    /// Native JSON bodies by their canonical form.
    pub canonical_json: bool,
    /// Clients' breakpoints end no prefix.
    pub ignore_breakpoints: bool,
}

impl Keying {
    /// What the tags of an endpoint configuration ask for.
    ///
    /// # Errors
    ///
    /// A value that is neither `true` nor `false`.
    pub fn asked_by_tags(tags: &[Tag]) -> Result<Keying, NotOurs> {
        let says = |place: &'static str, unsaid: bool| match tags.iter().find(|tag| tag.key == place) {
            None => Ok(unsaid),
            Some(Tag { value, .. }) => value.parse().map_err(|_| NotOurs::Switch { place, given: value.clone() }),
        };
        Ok(Keying { canonical_json: says(CANONICAL_TAG, false)?, ignore_breakpoints: !says(BREAKPOINTS_TAG, true)? })
    }
}

/// What is to be said of a variant that runs with another strategy than the one that was asked for.
pub fn runs_otherwise(variant: &VariantRecord) -> Option<&'static str> {
    let asked = variant.config.routing_config.as_ref().map(|config| config.routing_strategy);
    let otherwise = variant.strategy.is_none() && asked == Some(RoutingStrategy::KvAware);
    otherwise.then_some("KV_AWARE runs as ADAPTIVE: engines' cache events are not read yet")
}

/// The strategy that the tags of an endpoint configuration ask for.
///
/// # Errors
///
/// A value that names no strategy of Isotherm's own.
pub fn asked_by_tags(tags: &[Tag]) -> Result<Option<StrategyName>, NotOurs> {
    let tag = tags.iter().find(|tag| tag.key == STRATEGY_TAG);
    tag.map(|tag| parse(&tag.value, STRATEGY_TAG)).transpose()
}

/// The strategy that the environment of a container asks for.
///
/// # Errors
///
/// A value that names no strategy of Isotherm's own.
pub fn asked_by_environment(environment: &Environment) -> Result<Option<StrategyName>, NotOurs> {
    environment.get(STRATEGY_VARIABLE).map(|value| parse(value, STRATEGY_VARIABLE)).transpose()
}

/// The most requests in flight on each instance that the tags of an endpoint configuration ask for.
///
/// # Errors
///
/// A value that is no bound.
pub fn bound_by_tags(tags: &[Tag]) -> Result<Option<NonZeroU32>, NotOurs> {
    let tag = tags.iter().find(|tag| tag.key == BOUND_TAG);
    tag.map(|tag| bound(&tag.value, BOUND_TAG)).transpose()
}

/// The most requests in flight on each instance or copy that the environment of a container asks for.
///
/// # Errors
///
/// A value that is no bound.
pub fn bound_by_environment(environment: &Environment) -> Result<Option<NonZeroU32>, NotOurs> {
    environment.get(BOUND_VARIABLE).map(|value| bound(value, BOUND_VARIABLE)).transpose()
}

/// A value that can't be asked for beside SageMaker's model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOurs {
    /// Not a strategy of Isotherm's own.
    #[error("{place} must be ROUND_ROBIN or ADAPTIVE, not {given:?}; RoutingConfig names the other strategies")]
    Strategy {
        /// The tag or the variable.
        place: &'static str,
        /// Its value.
        given: String,
    },
    /// Not a number of requests.
    #[error("{place} must be a whole number from 1 to {HIGHEST_BOUND}, not {given:?}")]
    Bound {
        /// The tag or the variable.
        place: &'static str,
        /// Its value.
        given: String,
    },
    /// Neither yes nor no.
    #[error("{place} must be true or false, not {given:?}")]
    Switch {
        /// The tag.
        place: &'static str,
        /// Its value.
        given: String,
    },
}

fn parse(value: &str, place: &'static str) -> Result<StrategyName, NotOurs> {
    match value.parse() {
        Ok(name @ (StrategyName::RoundRobin | StrategyName::Adaptive)) => Ok(name),
        _ => Err(NotOurs::Strategy { place, given: value.to_owned() }),
    }
}

fn bound(value: &str, place: &'static str) -> Result<NonZeroU32, NotOurs> {
    let bound = value.parse().ok().filter(|bound: &NonZeroU32| bound.get() <= HIGHEST_BOUND);
    bound.ok_or_else(|| NotOurs::Bound { place, given: value.to_owned() })
}

fn full(strategy: Strategy) -> Routing {
    Routing { strategy, rollout: Rollout::FULL }
}

fn strategy(asked: Option<StrategyName>, config: Option<&RoutingConfig>, keying: Keying) -> Strategy {
    match (asked, config.map(|config| config.routing_strategy)) {
        (Some(StrategyName::RoundRobin), _) => Strategy::RoundRobin,
        (Some(StrategyName::Adaptive), _) => Strategy::Adaptive,
        // The same score, until engines' events feed an exact index.
        (_, Some(RoutingStrategy::KvAware)) => Strategy::Adaptive,
        (_, Some(RoutingStrategy::LeastOutstandingRequests)) => Strategy::LeastOutstandingRequests,
        (_, Some(RoutingStrategy::PrefixAware)) => {
            Strategy::PrefixAware(prefix_aware(config.and_then(|config| config.prefix_aware_routing_config), keying))
        }
        (_, Some(RoutingStrategy::Random) | None) => Strategy::Random,
    }
}

/// Both parameters were checked when the configuration was created; defaults stand in for one that is not there.
fn prefix_aware(parameters: Option<PrefixAwareRouting>, keying: Keying) -> PrefixAware {
    let length = parameters.and_then(|parameters| parameters.prefix_length);
    let threshold = parameters.and_then(|parameters| parameters.concurrency_threshold);
    PrefixAware {
        prefix_length: length.and_then(|length| PrefixLength::new(length.into()).ok()).unwrap_or_default(),
        concurrency_threshold: threshold
            .and_then(|threshold| ConcurrencyThreshold::new(threshold.into()).ok())
            .unwrap_or_default(),
        spill: SpillRule::default(),
        client_breakpoints: !keying.ignore_breakpoints,
        canonical_json: keying.canonical_json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> RoutingConfig {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn each_of_sagemakers_strategies_runs_as_one_of_ours() {
        let of = |json: &str| strategy(None, Some(&config(json)), Keying::default());
        assert_eq!(of(r#"{"RoutingStrategy":"RANDOM"}"#), Strategy::Random);
        assert_eq!(of(r#"{"RoutingStrategy":"LEAST_OUTSTANDING_REQUESTS"}"#), Strategy::LeastOutstandingRequests);
        assert_eq!(of(r#"{"RoutingStrategy":"KV_AWARE"}"#), Strategy::Adaptive);
        assert_eq!(strategy(None, None, Keying::default()), Strategy::Random);
        let json = r#"{"RoutingStrategy":"PREFIX_AWARE",
            "PrefixAwareRoutingConfig":{"PrefixLength":2048,"ConcurrencyThreshold":7}}"#;
        let Strategy::PrefixAware(prefix_aware) = of(json) else { panic!("not PREFIX_AWARE") };
        assert_eq!((prefix_aware.prefix_length.get(), prefix_aware.concurrency_threshold.get()), (2_048, 7));
    }

    #[test]
    fn our_strategies_beat_the_configured_one() {
        let random = config(r#"{"RoutingStrategy":"RANDOM"}"#);
        let tags = [Tag { key: STRATEGY_TAG.to_owned(), value: String::from("round-robin") }];
        let strategy = |asked| strategy(asked, Some(&random), Keying::default());
        assert_eq!(strategy(asked_by_tags(&tags).unwrap()), Strategy::RoundRobin);
        let environment = Environment::from([(STRATEGY_VARIABLE.to_owned(), String::from("ADAPTIVE"))]);
        assert_eq!(strategy(asked_by_environment(&environment).unwrap()), Strategy::Adaptive);
        assert_eq!(asked_by_tags(&[]), Ok(None));
    }

    #[test]
    fn what_a_key_is_made_of_is_asked_for_by_tags() {
        let tag = |key: &str, value: &str| Tag { key: key.to_owned(), value: value.to_owned() };
        let tags = [tag(CANONICAL_TAG, "true"), tag(BREAKPOINTS_TAG, "false")];
        let keying = Keying::asked_by_tags(&tags).unwrap();
        let configured = config(r#"{"RoutingStrategy":"PREFIX_AWARE"}"#);
        let Strategy::PrefixAware(rules) = strategy(None, Some(&configured), keying) else {
            panic!("not PREFIX_AWARE")
        };
        assert!(rules.canonical_json && !rules.client_breakpoints);
        assert_eq!(Keying::asked_by_tags(&[]), Ok(Keying::default()));
        let refused = Keying::asked_by_tags(&[tag(CANONICAL_TAG, "yes")]).unwrap_err();
        assert_eq!(refused.to_string(), "isotherm:canonical-json must be true or false, not \"yes\"");
    }

    #[test]
    fn a_bound_is_asked_for_by_tag_or_environment() {
        let by_tag = |value: &str| bound_by_tags(&[Tag { key: BOUND_TAG.to_owned(), value: value.to_owned() }]);
        let by_environment =
            |value: &str| bound_by_environment(&Environment::from([(BOUND_VARIABLE.to_owned(), value.to_owned())]));
        assert_eq!(
            (by_tag("64"), by_environment("1000000")),
            (Ok(NonZeroU32::new(64)), Ok(NonZeroU32::new(1_000_000)))
        );
        assert_eq!((bound_by_tags(&[]), bound_by_environment(&Environment::default())), (Ok(None), Ok(None)));
        for wrong in ["0", "-1", "1000001", "many", ""] {
            let expected = format!("isotherm:max-in-flight must be a whole number from 1 to 1000000, not {wrong:?}");
            assert_eq!(by_tag(wrong).unwrap_err().to_string(), expected);
            assert!(by_environment(wrong).unwrap_err().to_string().starts_with("ISOTHERM_MAX_IN_FLIGHT must be "));
        }
    }

    #[test]
    fn other_words_are_refused_with_what_is_allowed() {
        let environment = Environment::from([(STRATEGY_VARIABLE.to_owned(), String::from("PREFIX_AWARE"))]);
        assert_eq!(
            asked_by_environment(&environment).unwrap_err().to_string(),
            "ISOTHERM_ROUTING_STRATEGY must be ROUND_ROBIN or ADAPTIVE, not \"PREFIX_AWARE\"; RoutingConfig names the \
             other strategies"
        );
    }
}
