//! The rules that can be simulated, by name.

use std::fmt;
use std::str::FromStr;

use isotherm_core::{
    ConcurrencyThreshold, HashSeed, OutOfRange, PrefixAware, PrefixLength, Rollout, Routing, Strategy, StrategyName,
};

use crate::router::{CacheAware, Chwbl, CoreStrategy, LMetric, Router, SessionHash, Sticky};

/// A rule to simulate, and the parameters that it was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    kind: Kind,
    /// `PREFIX_AWARE@1024/64`: these parameters instead of the scenario's.
    parameters: Option<(PrefixLength, ConcurrencyThreshold)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One that serves.
    Core(StrategyName),
    /// KubeAI's.
    Chwbl,
    /// SGLang's, SMG's and vLLM's.
    CacheAware,
    /// llm-d's.
    Sticky,
    /// That of the paper of this name.
    LMetric,
    /// By session alone.
    SessionHash,
}

/// The rules of others, which only the simulator has.
const OTHERS: [Kind; 5] = [Kind::Chwbl, Kind::CacheAware, Kind::Sticky, Kind::LMetric, Kind::SessionHash];

impl Rule {
    /// Every rule without parameters, in the order in which they are listed to people.
    pub fn all() -> impl Iterator<Item = Rule> {
        let kinds = StrategyName::ALL.into_iter().map(Kind::Core).chain(OTHERS);
        kinds.map(|kind| Rule { kind, parameters: None })
    }

    /// What a router that serves is told to do; `None` for the rules of others. `prefix_aware` is what the scenario says.
    pub fn served(&self, prefix_aware: PrefixAware) -> Option<Strategy> {
        let Kind::Core(name) = self.kind else { return None };
        Some(self.strategy(name, prefix_aware))
    }

    /// `PREFIX_AWARE` with parameters of its own.
    pub fn prefix_aware(length: PrefixLength, threshold: ConcurrencyThreshold) -> Rule {
        Rule { kind: Kind::Core(StrategyName::PrefixAware), parameters: Some((length, threshold)) }
    }

    pub(crate) fn parameters(&self) -> Option<(PrefixLength, ConcurrencyThreshold)> {
        self.parameters
    }

    /// The router that follows it. `prefix_aware` is what the scenario says.
    pub(crate) fn router(&self, prefix_aware: PrefixAware, hash_seed: HashSeed) -> Box<dyn Router> {
        match self.kind {
            Kind::Core(name) => {
                let routing = Routing { strategy: self.strategy(name, prefix_aware), rollout: Rollout::FULL };
                Box::new(CoreStrategy::new(routing, hash_seed))
            }
            Kind::Chwbl => Box::new(Chwbl::new(hash_seed)),
            Kind::CacheAware => Box::new(CacheAware::new()),
            Kind::Sticky => Box::new(Sticky::new()),
            Kind::LMetric => Box::new(LMetric::new()),
            Kind::SessionHash => Box::new(SessionHash::default()),
        }
    }

    fn strategy(&self, name: StrategyName, prefix_aware: PrefixAware) -> Strategy {
        match name {
            StrategyName::Random => Strategy::Random,
            StrategyName::RoundRobin => Strategy::RoundRobin,
            StrategyName::LeastOutstandingRequests => Strategy::LeastOutstandingRequests,
            StrategyName::Adaptive => Strategy::Adaptive,
            StrategyName::PrefixAware => Strategy::PrefixAware(match self.parameters {
                Some((prefix_length, concurrency_threshold)) => {
                    PrefixAware { prefix_length, concurrency_threshold, ..prefix_aware }
                }
                None => prefix_aware,
            }),
        }
    }

    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Core(name) => name.as_str(),
            Kind::Chwbl => "CHWBL",
            Kind::CacheAware => "CACHE_AWARE",
            Kind::Sticky => "STICKY",
            Kind::LMetric => "LMETRIC",
            Kind::SessionHash => "SESSION_HASH",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())?;
        match self.parameters {
            Some((length, threshold)) => write!(formatter, "@{}/{}", length.get(), threshold.get()),
            None => Ok(()),
        }
    }
}

impl FromStr for Rule {
    type Err = UnknownRule;

    /// Reads a name in any case, with `-` or `_`; behind `PREFIX_AWARE` may stand `@LENGTH/THRESHOLD`.
    fn from_str(text: &str) -> Result<Rule, UnknownRule> {
        let (name, parameters) = match text.split_once('@') {
            Some((name, parameters)) => (name, Some(parameters)),
            None => (text, None),
        };
        let spelled = name.trim().replace('-', "_").to_ascii_uppercase();
        let rule = Rule::all().find(|rule| rule.name() == spelled);
        let rule = rule.ok_or_else(|| UnknownRule::Name { given: name.to_owned() })?;
        let Some(parameters) = parameters else { return Ok(rule) };
        if rule.kind != Kind::Core(StrategyName::PrefixAware) {
            return Err(UnknownRule::NoParameters { rule: rule.name() });
        }
        let malformed = || UnknownRule::Parameters { given: parameters.to_owned() };
        let (length, threshold) = parameters.split_once('/').ok_or_else(malformed)?;
        let length = PrefixLength::new(length.parse().map_err(|_| malformed())?)?;
        let threshold = ConcurrencyThreshold::new(threshold.parse().map_err(|_| malformed())?)?;
        Ok(Rule { parameters: Some((length, threshold)), ..rule })
    }
}

/// A text that names no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownRule {
    /// No rule has this name.
    #[error("{given:?} is no strategy; allowed: {}", Rule::all().map(|rule| rule.to_string()).collect::<Vec<_>>().join(", "))]
    Name {
        /// What was given.
        given: String,
    },
    /// Only PREFIX_AWARE has parameters.
    #[error("{rule} has no parameters; only PREFIX_AWARE@LENGTH/THRESHOLD has")]
    NoParameters {
        /// The rule named.
        rule: &'static str,
    },
    /// Not two numbers.
    #[error("{given:?} behind PREFIX_AWARE@ is not LENGTH/THRESHOLD, such as 4096/10")]
    Parameters {
        /// What was given.
        given: String,
    },
    /// A number that the parameter cannot have.
    #[error("PREFIX_AWARE: {0}")]
    OutOfRange(#[from] OutOfRange),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_people_write_them_and_written_back() {
        for (given, name) in
            [("random", "RANDOM"), ("prefix-aware", "PREFIX_AWARE"), ("Prefix_Aware@1024/64", "PREFIX_AWARE@1024/64")]
        {
            assert_eq!(given.parse::<Rule>().unwrap().to_string(), name);
        }
        for rule in Rule::all() {
            assert_eq!(rule.to_string().parse::<Rule>(), Ok(rule));
        }
    }

    #[test]
    fn what_names_no_rule_is_refused_with_what_is_allowed() {
        let refusal = |text: &str| text.parse::<Rule>().unwrap_err().to_string();
        assert!(refusal("fastest").starts_with("\"fastest\" is no strategy; allowed: RANDOM, ROUND_ROBIN, "));
        assert_eq!(refusal("random@1/2"), "RANDOM has no parameters; only PREFIX_AWARE@LENGTH/THRESHOLD has");
        assert_eq!(refusal("prefix-aware@9"), "\"9\" behind PREFIX_AWARE@ is not LENGTH/THRESHOLD, such as 4096/10");
        assert!(refusal("prefix-aware@0/9").contains("prefix_length must be from 1 to 65536, not 0"));
    }
}
