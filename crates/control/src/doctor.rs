//! What a router and its engines should be told: checks over what is known of them, each finding with its fix.

mod checks;
mod facts;
#[cfg(test)]
mod tests;

use isotherm_config::Config;
use isotherm_fleet::Fleet;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) use self::facts::Facts;
use crate::observer::Seen;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Requests are answered, worse or less safely than they could be.
    Warning,
    /// Requests fail, or routing by prefix is in vain.
    Problem,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The check's name.
    pub check: String,
    /// How bad it is.
    pub verdict: Verdict,
    /// What it is about: an instance, a variant, the router.
    pub subject: String,
    /// What was found.
    pub finding: String,
    /// What helps; empty where all is well.
    pub fix: String,
}

/// A router's check-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkup {
    /// The router's version.
    pub version: String,
    /// What routers must have in common to agree on every prefix's home.
    pub routing: Value,
    /// What was found, in the order of the checks.
    pub findings: Vec<Finding>,
}

impl Checkup {
    /// Checks a configuration and the fleet that it describes, once the fleet's tasks have had the time to ask around.
    pub fn of_config(config: &Config, fleet: &Fleet) -> Checkup {
        Checkup::of(config, fleet, &Facts::of_fleet(fleet))
    }

    /// Checks a router that runs.
    pub(crate) fn of_router(config: &Config, fleet: &Fleet, seen: &Seen) -> Checkup {
        Checkup::of(config, fleet, &Facts::of_router(fleet, seen))
    }

    fn of(config: &Config, fleet: &Fleet, facts: &Facts) -> Checkup {
        Checkup {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            routing: routing(config, fleet),
            findings: checks::all(config, facts),
        }
    }

    /// What several routers, each with its name, do not agree on; none of it when they agree on all.
    pub fn disagreements(routers: &[(String, Checkup)]) -> Vec<Finding> {
        checks::routers::check(routers)
    }
}

/// What decides homes: the seed, as a hash of it, and of each variant how it routes and the instances that it has.
fn routing(config: &Config, fleet: &Fleet) -> Value {
    let seed = xxhash_rust::xxh3::xxh3_64_with_seed(b"isotherm doctor", config.hash_seed.0);
    let topology = fleet.topology();
    let variants = topology.variants().map(|variant| {
        let routing = variant.routing();
        let mut instances: Vec<String> = variant
            .instances(fleet.clock().now())
            .iter()
            .map(|one| format!("{} ×{}", one.instance.id(), one.weight.get()))
            .collect();
        instances.sort_unstable();
        let value = json!({
            "strategy": routing.strategy.name().as_str(),
            "prefix_length": routing.prefix_length().map(|length| length.get()),
            "rollout": routing.rollout.percent(),
            "instances": instances,
        });
        (format!("{}/{}", variant.endpoint(), variant.name()), value)
    });
    json!({ "hash_seed": format!("{seed:016x}"), "variants": variants.collect::<serde_json::Map<_, _>>() })
}
