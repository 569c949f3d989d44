//! How the router of a measurement is told to route: one strategy at a time, by its name.

use isotherm_config::{Config, Overrides};
use isotherm_core::{PrefixAware, SpillRule, Strategy};
use isotherm_sim::Rule;

use crate::exit::Failure;

/// What is the same under each strategy.
#[derive(Debug, Clone)]
pub(super) struct Routed {
    overrides: Overrides,
    spill: Option<SpillRule>,
}

impl Routed {
    /// The parameters of PREFIX_AWARE as flags give them; the configuration's own where they do not.
    pub(super) fn by_flags(prefix_length: Option<String>, concurrency_threshold: Option<String>) -> Routed {
        let overrides = Overrides {
            // Its parameters are needed whatever the strategy will be.
            strategy: Some("PREFIX_AWARE".to_owned()),
            prefix_length,
            concurrency_threshold,
            port: Some("0".to_owned()),
            admin_port: Some("0".to_owned()),
            ..Overrides::default()
        };
        Routed { overrides, spill: None }
    }

    /// A scenario's parameters of PREFIX_AWARE.
    pub(super) fn by_scenario(parameters: PrefixAware) -> Routed {
        let PrefixAware { prefix_length, concurrency_threshold, spill, .. } = parameters;
        let (length, threshold) = (prefix_length.get().to_string(), concurrency_threshold.get().to_string());
        Routed { spill: Some(spill), ..Routed::by_flags(Some(length), Some(threshold)) }
    }

    /// What a configuration is loaded with, for [`apply`](Self::apply).
    pub(super) fn overrides(&self) -> Overrides {
        self.overrides.clone()
    }

    /// Sets the strategy of this name.
    pub(super) fn apply(&self, strategy: &str, config: &mut Config) -> Result<(), Failure> {
        let rule: Rule = strategy.parse().map_err(|error| Failure::Usage(format!("--strategies: {error}")))?;
        let routing = &mut config.endpoints[0].variants[0].routing;
        let parameters = match routing.strategy {
            Strategy::PrefixAware(parameters) => parameters,
            _ => PrefixAware::default(),
        };
        let spill = self.spill.unwrap_or(parameters.spill);
        routing.strategy = served(&rule, PrefixAware { spill, ..parameters })?;
        Ok(())
    }
}

/// The strategy that a router follows. Rules of others are only simulated.
pub(super) fn served(rule: &Rule, parameters: PrefixAware) -> Result<Strategy, Failure> {
    rule.served(parameters).ok_or_else(|| {
        let names: Vec<String> =
            Rule::all().filter(|rule| rule.served(parameters).is_some()).map(|rule| rule.to_string()).collect();
        let text = format!("--strategies: {rule} can only be simulated; routers have {}", names.join(", "));
        Failure::Usage(text)
    })
}
