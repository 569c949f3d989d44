//! `routing`: how a variant chooses an instance.

use isotherm_core::{
    ConcurrencyThreshold, PrefixAware, PrefixLength, Rollout, Routing, SpillRule, Strategy, StrategyName,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::value::{parsed, whole};

/// How a variant chooses an instance. The parameters of PREFIX_AWARE may stand beside another strategy, so that
/// switching back and forth needs one word.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Routing")]
pub(crate) struct RoutingElement {
    /// In any case, with `_` or `-`.
    #[serde(deserialize_with = "parsed")]
    #[schemars(schema_with = "strategy_schema")]
    pub(crate) strategy: StrategyName,
    /// How many characters of a request's text (bytes of the body on native paths) decide its home.
    #[serde(serialize_with = "write_prefix_length", deserialize_with = "read_prefix_length")]
    #[schemars(with = "u32", range(min = 1, max = 65_536))]
    pub(crate) prefix_length: PrefixLength,
    /// How many requests in flight make a home full. Counts this router's own requests.
    #[serde(serialize_with = "write_threshold", deserialize_with = "read_threshold")]
    #[schemars(with = "u32", range(min = 1, max = 1_024))]
    pub(crate) concurrency_threshold: ConcurrencyThreshold,
    /// Where a request goes whose home is full: to the `next` in its prefix's own order, or to the instance with the
    /// fewest requests (`least-outstanding`), as SageMaker does.
    #[schemars(schema_with = "spill_schema")]
    pub(crate) spill: SpillRule,
    /// Whether a client's own breakpoint (`prompt_cache_breakpoint`, `cache_control`) ends the prefix, where one stands
    /// within `prefix_length`.
    pub(crate) client_breakpoints: bool,
    /// Whether the prefix of a JSON body on native paths is of its canonical form: white space and the order of keys
    /// count no more. The body itself passes unchanged.
    pub(crate) canonical_json: bool,
    /// Which share of the prefixes, in percent, goes by the strategy; the rest goes at random, for comparison.
    #[serde(serialize_with = "write_rollout", deserialize_with = "read_rollout")]
    #[schemars(with = "u32", range(min = 0, max = 100))]
    pub(crate) rollout: Rollout,
}

impl Default for RoutingElement {
    fn default() -> RoutingElement {
        let PrefixAware { prefix_length, concurrency_threshold, spill, client_breakpoints, canonical_json } =
            PrefixAware::default();
        RoutingElement {
            strategy: Strategy::default().name(),
            prefix_length,
            concurrency_threshold,
            spill,
            client_breakpoints,
            canonical_json,
            rollout: Rollout::default(),
        }
    }
}

impl From<RoutingElement> for Routing {
    fn from(element: RoutingElement) -> Routing {
        let RoutingElement {
            strategy,
            prefix_length,
            concurrency_threshold,
            spill,
            client_breakpoints,
            canonical_json,
            rollout,
        } = element;
        let strategy = match strategy {
            StrategyName::Random => Strategy::Random,
            StrategyName::RoundRobin => Strategy::RoundRobin,
            StrategyName::LeastOutstandingRequests => Strategy::LeastOutstandingRequests,
            StrategyName::PrefixAware => Strategy::PrefixAware(PrefixAware {
                prefix_length,
                concurrency_threshold,
                spill,
                client_breakpoints,
                canonical_json,
            }),
            StrategyName::Adaptive => Strategy::Adaptive,
        };
        Routing { strategy, rollout }
    }
}

fn read_prefix_length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PrefixLength, D::Error> {
    whole(deserializer, PrefixLength::new)
}

fn write_prefix_length<S: Serializer>(length: &PrefixLength, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(length.get())
}

fn read_threshold<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ConcurrencyThreshold, D::Error> {
    whole(deserializer, ConcurrencyThreshold::new)
}

fn write_threshold<S: Serializer>(threshold: &ConcurrencyThreshold, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(threshold.get())
}

fn read_rollout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rollout, D::Error> {
    whole(deserializer, Rollout::new)
}

fn write_rollout<S: Serializer>(rollout: &Rollout, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(rollout.percent())
}

/// The names as documented, for editors to offer, and any other spelling that is understood.
fn strategy_schema(_: &mut SchemaGenerator) -> Schema {
    let documented = StrategyName::ALL.map(StrategyName::as_str);
    let understood: Vec<String> = documented.iter().map(|name| any_spelling(name)).collect();
    json_schema!({
        "anyOf": [
            { "enum": documented },
            { "type": "string", "pattern": format!("^({})$", understood.join("|")) }
        ]
    })
}

/// A pattern for the word in any case, with `_` or `-`. JSON Schema's patterns have no flag for that.
fn any_spelling(word: &str) -> String {
    word.chars()
        .map(|letter| match letter {
            '_' => String::from("[-_]"),
            letter => format!("[{letter}{}]", letter.to_ascii_lowercase()),
        })
        .collect()
}

fn spill_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["next", "least-outstanding"] })
}
