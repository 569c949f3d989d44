//! Routing strategies and their parameters, valid by construction.

use std::fmt;
use std::num::{NonZeroU16, NonZeroU32};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How a variant chooses an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Any instance, by weight.
    Random,
    /// One after the other, by weight.
    RoundRobin,
    /// The instance with the fewest requests in flight per weight.
    LeastOutstandingRequests,
    /// The key's home while it is below the concurrency threshold, else elsewhere.
    PrefixAware(PrefixAware),
    /// Where the request adds the least latency, by what each instance is believed to hold and to have before it.
    Adaptive,
}

impl Strategy {
    /// The name without the parameters.
    pub const fn name(self) -> StrategyName {
        match self {
            Strategy::Random => StrategyName::Random,
            Strategy::RoundRobin => StrategyName::RoundRobin,
            Strategy::LeastOutstandingRequests => StrategyName::LeastOutstandingRequests,
            Strategy::PrefixAware(_) => StrategyName::PrefixAware,
            Strategy::Adaptive => StrategyName::Adaptive,
        }
    }
}

impl Default for Strategy {
    fn default() -> Strategy {
        Strategy::PrefixAware(PrefixAware::default())
    }
}

/// The parameters of `PREFIX_AWARE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixAware {
    /// How much of a request decides its home.
    pub prefix_length: PrefixLength,
    /// How many requests in flight make a home full.
    pub concurrency_threshold: ConcurrencyThreshold,
    /// Where a request goes whose home is full.
    pub spill: SpillRule,
    /// A client's own breakpoint ends the prefix where it stands within `prefix_length`. Unless told otherwise, it does.
    pub client_breakpoints: bool,
    /// The prefix of a native JSON body is of its canonical form, not of its bytes. Unless told otherwise, it is not.
    pub canonical_json: bool,
}

impl Default for PrefixAware {
    fn default() -> PrefixAware {
        PrefixAware {
            prefix_length: PrefixLength::default(),
            concurrency_threshold: ConcurrencyThreshold::default(),
            spill: SpillRule::default(),
            client_breakpoints: true,
            canonical_json: false,
        }
    }
}

/// Where a request goes whose home is at the concurrency threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpillRule {
    /// To the next in the key's own order, so that a hot prefix warms the same second instance each time.
    #[default]
    Next,
    /// To the instance with the fewest requests in flight, as SageMaker does.
    LeastOutstanding,
}

/// The name of a strategy, in SageMaker's spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StrategyName {
    /// See [`Strategy::Random`].
    Random,
    /// See [`Strategy::RoundRobin`].
    RoundRobin,
    /// See [`Strategy::LeastOutstandingRequests`].
    LeastOutstandingRequests,
    /// See [`Strategy::PrefixAware`].
    PrefixAware,
    /// See [`Strategy::Adaptive`].
    Adaptive,
}

impl StrategyName {
    /// Every strategy, in the order in which they are listed to people.
    pub const ALL: [StrategyName; 5] = [
        StrategyName::Random,
        StrategyName::RoundRobin,
        StrategyName::LeastOutstandingRequests,
        StrategyName::PrefixAware,
        StrategyName::Adaptive,
    ];

    /// SageMaker's spelling, as in configurations and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            StrategyName::Random => "RANDOM",
            StrategyName::RoundRobin => "ROUND_ROBIN",
            StrategyName::LeastOutstandingRequests => "LEAST_OUTSTANDING_REQUESTS",
            StrategyName::PrefixAware => "PREFIX_AWARE",
            StrategyName::Adaptive => "ADAPTIVE",
        }
    }
}

impl fmt::Display for StrategyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for StrategyName {
    type Err = UnknownStrategy;

    /// Reads a name in any case, with `-` or `_`: `PREFIX_AWARE` and `prefix-aware` are the same.
    fn from_str(text: &str) -> Result<StrategyName, UnknownStrategy> {
        let spelled = text.replace('-', "_").to_ascii_uppercase();
        StrategyName::ALL
            .into_iter()
            .find(|name| name.as_str() == spelled)
            .ok_or_else(|| UnknownStrategy { given: text.to_owned() })
    }
}

/// A word that names no strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is no strategy; allowed: {}", StrategyName::ALL.map(StrategyName::as_str).join(", "))]
pub struct UnknownStrategy {
    given: String,
}

/// A number outside the range of the parameter that it was given for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be from {least} to {most}, not {given}")]
pub struct OutOfRange {
    what: &'static str,
    given: u64,
    least: u64,
    most: u64,
}

/// How many characters (native API: bytes) of a request decide its home: 1 to 65,536, 4,096 by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrefixLength(NonZeroU32);

impl PrefixLength {
    /// The longest prefix that decides a home.
    pub const MAX: u32 = 65_536;

    /// A prefix length, if the number can be one.
    pub fn new(length: u64) -> Result<PrefixLength, OutOfRange> {
        u32::try_from(length)
            .ok()
            .filter(|&length| length <= PrefixLength::MAX)
            .and_then(NonZeroU32::new)
            .map(PrefixLength)
            .ok_or(OutOfRange { what: "prefix_length", given: length, least: 1, most: PrefixLength::MAX.into() })
    }

    /// The length in characters (native API: bytes).
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl Default for PrefixLength {
    fn default() -> PrefixLength {
        PrefixLength(NonZeroU32::MIN.saturating_add(4_095))
    }
}

/// How many requests in flight make an instance full for its prefixes: 1 to 1,024, 10 by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConcurrencyThreshold(NonZeroU16);

impl ConcurrencyThreshold {
    /// The highest threshold.
    pub const MAX: u16 = 1_024;

    /// A threshold, if the number can be one.
    pub fn new(threshold: u64) -> Result<ConcurrencyThreshold, OutOfRange> {
        u16::try_from(threshold)
            .ok()
            .filter(|&threshold| threshold <= ConcurrencyThreshold::MAX)
            .and_then(NonZeroU16::new)
            .map(ConcurrencyThreshold)
            .ok_or(OutOfRange {
                what: "concurrency_threshold",
                given: threshold,
                least: 1,
                most: ConcurrencyThreshold::MAX.into(),
            })
    }

    /// The threshold in requests.
    pub const fn get(self) -> u32 {
        self.0.get() as u32
    }
}

impl Default for ConcurrencyThreshold {
    fn default() -> ConcurrencyThreshold {
        ConcurrencyThreshold(NonZeroU16::MIN.saturating_add(9))
    }
}

/// Which share of the keys goes by the strategy, in percent; the others go at random. 100 by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rollout(u8);

impl Rollout {
    /// All keys go by the strategy.
    pub const FULL: Rollout = Rollout(100);

    /// A rollout, if the number is a percentage.
    pub fn new(percent: u64) -> Result<Rollout, OutOfRange> {
        match u8::try_from(percent) {
            Ok(percent) if percent <= 100 => Ok(Rollout(percent)),
            _ => Err(OutOfRange { what: "rollout", given: percent, least: 0, most: 100 }),
        }
    }

    /// The share in percent.
    pub const fn percent(self) -> u8 {
        self.0
    }
}

impl Default for Rollout {
    fn default() -> Rollout {
        Rollout::FULL
    }
}

/// The routing configuration of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Routing {
    /// How an instance is chosen.
    pub strategy: Strategy,
    /// Which share of the keys the strategy decides.
    pub rollout: Rollout,
}

impl Routing {
    /// How much of a request decides its home; `None` where the strategy does not look at prefixes.
    pub fn prefix_length(&self) -> Option<PrefixLength> {
        match self.strategy {
            Strategy::PrefixAware(prefix_aware) => Some(prefix_aware.prefix_length),
            Strategy::Random | Strategy::RoundRobin | Strategy::LeastOutstandingRequests | Strategy::Adaptive => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_documentation() {
        assert_eq!(PrefixLength::default().get(), 4_096);
        assert_eq!(ConcurrencyThreshold::default().get(), 10);
        assert_eq!(Routing::default().strategy.name(), StrategyName::PrefixAware);
        assert_eq!(Rollout::default(), Rollout::FULL);
    }

    #[test]
    fn names_are_read_as_people_spell_them() {
        for text in ["PREFIX_AWARE", "prefix-aware", "Prefix_Aware"] {
            assert_eq!(text.parse(), Ok(StrategyName::PrefixAware));
        }
        let error = "cache_aware".parse::<StrategyName>().unwrap_err().to_string();
        assert!(error.contains("\"cache_aware\"") && error.contains("LEAST_OUTSTANDING_REQUESTS"), "{error}");
    }

    #[test]
    fn numbers_outside_their_range_are_refused_with_the_range() {
        for (error, text) in [
            (PrefixLength::new(0).unwrap_err(), "prefix_length must be from 1 to 65536, not 0"),
            (PrefixLength::new(65_537).unwrap_err(), "prefix_length must be from 1 to 65536, not 65537"),
            (ConcurrencyThreshold::new(1_025).unwrap_err(), "concurrency_threshold must be from 1 to 1024, not 1025"),
            (Rollout::new(101).unwrap_err(), "rollout must be from 0 to 100, not 101"),
        ] {
            assert_eq!(error.to_string(), text);
        }
        assert_eq!(PrefixLength::new(65_536).unwrap().get(), 65_536);
        assert_eq!(ConcurrencyThreshold::new(1_024).unwrap().get(), 1_024);
    }

    #[test]
    fn names_are_shown_in_the_spelling_of_sagemaker_and_read_again() {
        for name in StrategyName::ALL {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        assert_eq!(format!("{:>8}|", StrategyName::Random), "  RANDOM|");
    }

    #[test]
    fn only_prefix_aware_has_a_prefix_length() {
        let prefix_length = PrefixLength::new(100).unwrap();
        let length_of = |strategy| Routing { strategy, ..Routing::default() }.prefix_length();
        assert_eq!(
            length_of(Strategy::PrefixAware(PrefixAware { prefix_length, ..PrefixAware::default() })),
            Some(prefix_length)
        );
        assert_eq!(length_of(Strategy::Adaptive), None);
        assert_eq!(Rollout::new(37).unwrap().percent(), 37);
    }
}
