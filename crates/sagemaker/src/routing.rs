//! From SageMaker's `RoutingConfig` to the strategy that runs.
//!
//! Strategies that SageMaker does not know are asked for beside its model: by the tag [`STRATEGY_TAG`] of an endpoint
//! configuration (for all its variants), or by [`STRATEGY_VARIABLE`] in the environment of a model's or component's
//! container, which beats the tag. Both beat `RoutingConfig`.

use isotherm_core::{
    ConcurrencyThreshold, PrefixAware, PrefixLength, Rollout, Routing, SpillRule, Strategy, StrategyName,
};

use crate::records::{ComponentPlan, VariantRecord};
use crate::shapes::{Environment, PrefixAwareRouting, RoutingConfig, RoutingStrategy, Tag};

/// The tag of an endpoint configuration that asks for `ROUND_ROBIN` or `ADAPTIVE`.
pub const STRATEGY_TAG: &str = "isotherm:routing-strategy";

/// The environment variable of a container that asks for `ROUND_ROBIN` or `ADAPTIVE`.
pub const STRATEGY_VARIABLE: &str = "ISOTHERM_ROUTING_STRATEGY";

/// How requests find their instance of a variant.
pub fn of_variant(variant: &VariantRecord) -> Routing {
    full(strategy(variant.strategy, variant.config.routing_config.as_ref()))
}

/// How requests find their copy of an inference component that the variant hosts.
pub fn of_component(component: &ComponentPlan, variant: &VariantRecord) -> Routing {
    full(strategy(component.strategy.or(variant.strategy), variant.config.routing_config.as_ref()))
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

/// A strategy that can't be asked for beside SageMaker's model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place} must be ROUND_ROBIN or ADAPTIVE, not {given:?}; RoutingConfig names the other strategies")]
pub struct NotOurs {
    place: &'static str,
    given: String,
}

fn parse(value: &str, place: &'static str) -> Result<StrategyName, NotOurs> {
    match value.parse() {
        Ok(name @ (StrategyName::RoundRobin | StrategyName::Adaptive)) => Ok(name),
        _ => Err(NotOurs { place, given: value.to_owned() }),
    }
}

fn full(strategy: Strategy) -> Routing {
    Routing { strategy, rollout: Rollout::FULL }
}

fn strategy(asked: Option<StrategyName>, config: Option<&RoutingConfig>) -> Strategy {
    match (asked, config.map(|config| config.routing_strategy)) {
        (Some(StrategyName::RoundRobin), _) => Strategy::RoundRobin,
        (Some(StrategyName::Adaptive), _) => Strategy::Adaptive,
        // The same score, until engines' events feed an exact index.
        (_, Some(RoutingStrategy::KvAware)) => Strategy::Adaptive,
        (_, Some(RoutingStrategy::LeastOutstandingRequests)) => Strategy::LeastOutstandingRequests,
        (_, Some(RoutingStrategy::PrefixAware)) => {
            Strategy::PrefixAware(prefix_aware(config.and_then(|config| config.prefix_aware_routing_config)))
        }
        (_, Some(RoutingStrategy::Random) | None) => Strategy::Random,
    }
}

/// Both parameters were checked when the configuration was created; defaults stand in for one that is not there.
fn prefix_aware(parameters: Option<PrefixAwareRouting>) -> PrefixAware {
    let length = parameters.and_then(|parameters| parameters.prefix_length);
    let threshold = parameters.and_then(|parameters| parameters.concurrency_threshold);
    PrefixAware {
        prefix_length: length.and_then(|length| PrefixLength::new(length.into()).ok()).unwrap_or_default(),
        concurrency_threshold: threshold
            .and_then(|threshold| ConcurrencyThreshold::new(threshold.into()).ok())
            .unwrap_or_default(),
        spill: SpillRule::default(),
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
        let of = |json: &str| strategy(None, Some(&config(json)));
        assert_eq!(of(r#"{"RoutingStrategy":"RANDOM"}"#), Strategy::Random);
        assert_eq!(of(r#"{"RoutingStrategy":"LEAST_OUTSTANDING_REQUESTS"}"#), Strategy::LeastOutstandingRequests);
        assert_eq!(of(r#"{"RoutingStrategy":"KV_AWARE"}"#), Strategy::Adaptive);
        assert_eq!(strategy(None, None), Strategy::Random);
        let json = r#"{"RoutingStrategy":"PREFIX_AWARE",
            "PrefixAwareRoutingConfig":{"PrefixLength":2048,"ConcurrencyThreshold":7}}"#;
        let Strategy::PrefixAware(prefix_aware) = of(json) else { panic!("not PREFIX_AWARE") };
        assert_eq!((prefix_aware.prefix_length.get(), prefix_aware.concurrency_threshold.get()), (2_048, 7));
    }

    #[test]
    fn our_strategies_beat_the_configured_one() {
        let random = config(r#"{"RoutingStrategy":"RANDOM"}"#);
        let tags = [Tag { key: STRATEGY_TAG.to_owned(), value: String::from("round-robin") }];
        assert_eq!(strategy(asked_by_tags(&tags).unwrap(), Some(&random)), Strategy::RoundRobin);
        let environment = Environment::from([(STRATEGY_VARIABLE.to_owned(), String::from("ADAPTIVE"))]);
        assert_eq!(strategy(asked_by_environment(&environment).unwrap(), Some(&random)), Strategy::Adaptive);
        assert_eq!(asked_by_tags(&[]), Ok(None));
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
