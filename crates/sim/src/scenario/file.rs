//! Reads scenario files.
//!
//! The shape of the file is in these types; numbers and words with rules of their own are checked while they are read,
//! so that the error has a line and a column; what depends on two values is checked after.

use std::sync::Arc;
use std::time::Duration;

use isotherm_core::{ConcurrencyThreshold, PrefixAware, PrefixLength, SpillRule};
use isotherm_engine_model::Profile;
use isotherm_workload::Arrivals;
use serde::Deserialize;
use serde::de::Error as _;

use super::quantity::Span;
use super::workload::WorkloadFile;
use super::{Fleet, FleetChange, Group, InvalidScenario, Scenario, Slo, TimedChange};
use crate::strategy::Rule;

pub(super) fn parse(name: &str, text: &str) -> Result<Scenario, InvalidScenario> {
    let options = serde_saphyr::options! { with_snippet: false };
    let file: ScenarioFile = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| InvalidScenario::Form { name: name.to_owned(), message: error.to_string() })?;
    let scenario = file.into_scenario(name)?;
    scenario.check()?;
    Ok(scenario)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioFile {
    name: Option<String>,
    title: String,
    #[serde(default)]
    fitted: Vec<String>,
    #[serde(default)]
    predicted: Vec<String>,
    fleet: FleetFile,
    #[serde(default)]
    changes: Vec<ChangeFile>,
    workload: WorkloadFile,
    arrivals: Option<ArrivalsFile>,
    #[serde(default = "one")]
    routers: u32,
    #[serde(default)]
    routing: RoutingFile,
    strategies: Vec<RuleFile>,
    duration: Span,
    warm_up: Span,
    #[serde(default = "one")]
    seeds: u32,
    #[serde(default)]
    slo: SloFile,
    price_per_instance_hour: Option<Factor>,
}

fn one() -> u32 {
    1
}

/// One group, or a list of groups.
#[derive(Deserialize)]
#[serde(try_from = "FleetKeys")]
struct FleetFile(Vec<GroupFile>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FleetKeys {
    groups: Option<Vec<GroupFile>>,
    instances: Option<u32>,
    profile: Option<ProfileFile>,
    kv_capacity_tokens: Option<u64>,
    max_num_batched_tokens: Option<u32>,
    max_num_seqs: Option<u32>,
    slower: Option<Factor>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupFile {
    instances: u32,
    profile: Option<ProfileFile>,
    kv_capacity_tokens: Option<u64>,
    max_num_batched_tokens: Option<u32>,
    max_num_seqs: Option<u32>,
    /// Steps take this many times as long.
    slower: Option<Factor>,
}

impl TryFrom<FleetKeys> for FleetFile {
    type Error = &'static str;

    fn try_from(keys: FleetKeys) -> Result<FleetFile, &'static str> {
        match keys {
            FleetKeys {
                groups: Some(groups),
                instances: None,
                profile: None,
                kv_capacity_tokens: None,
                max_num_batched_tokens: None,
                max_num_seqs: None,
                slower: None,
            } => Ok(FleetFile(groups)),
            FleetKeys {
                groups: None,
                instances: Some(instances),
                profile,
                kv_capacity_tokens,
                max_num_batched_tokens,
                max_num_seqs,
                slower,
            } => Ok(FleetFile(vec![GroupFile {
                instances,
                profile,
                kv_capacity_tokens,
                max_num_batched_tokens,
                max_num_seqs,
                slower,
            }])),
            _ => Err("a fleet has either groups, or instances and what else describes them"),
        }
    }
}

/// A number above 0.
struct Factor(f64);

impl<'de> Deserialize<'de> for Factor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Factor, D::Error> {
        match f64::deserialize(deserializer)? {
            factor if factor.is_finite() && factor > 0.0 => Ok(Factor(factor)),
            other => Err(D::Error::custom(format!("{other} must be a number above 0"))),
        }
    }
}

struct ProfileFile(Profile);

impl<'de> Deserialize<'de> for ProfileFile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<ProfileFile, D::Error> {
        let name = String::deserialize(deserializer)?;
        Profile::named(&name).map(ProfileFile).map_err(D::Error::custom)
    }
}

#[derive(Deserialize)]
#[serde(try_from = "ChangeKeys")]
struct ChangeFile(TimedChange);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeKeys {
    at: Span,
    add: Option<u32>,
    cold_start: Option<Span>,
    remove: Option<u32>,
    fail: Option<u32>,
    lasts: Option<Span>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum ArrivalsFile {
    Users,
    Recorded { rate: f64 },
    Poisson { per_second: f64 },
    Bursts { per_second: f64, variation: f64 },
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RoutingFile {
    prefix_length: PrefixLengthFile,
    concurrency_threshold: ThresholdFile,
    spill: SpillRule,
}

#[derive(Default)]
struct PrefixLengthFile(PrefixLength);

impl<'de> Deserialize<'de> for PrefixLengthFile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<PrefixLengthFile, D::Error> {
        PrefixLength::new(u64::deserialize(deserializer)?).map(PrefixLengthFile).map_err(D::Error::custom)
    }
}

#[derive(Default)]
struct ThresholdFile(ConcurrencyThreshold);

impl<'de> Deserialize<'de> for ThresholdFile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<ThresholdFile, D::Error> {
        ConcurrencyThreshold::new(u64::deserialize(deserializer)?).map(ThresholdFile).map_err(D::Error::custom)
    }
}

struct RuleFile(Rule);

impl<'de> Deserialize<'de> for RuleFile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<RuleFile, D::Error> {
        String::deserialize(deserializer)?.parse().map(RuleFile).map_err(D::Error::custom)
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct SloFile {
    ttft: Option<Span>,
    token_gap: Option<Span>,
}

impl ScenarioFile {
    fn into_scenario(self, name: &str) -> Result<Scenario, InvalidScenario> {
        let groups = self.fleet.0;
        Ok(Scenario {
            name: self.name.unwrap_or_else(|| name.to_owned()),
            title: self.title,
            fitted: self.fitted,
            predicted: self.predicted,
            fleet: Fleet { groups: groups.into_iter().map(GroupFile::into_group).collect() },
            changes: self.changes.into_iter().map(|change| change.0).collect(),
            workload: self.workload.into_workload()?,
            arrivals: self.arrivals.map(|arrivals| match arrivals {
                ArrivalsFile::Users => Arrivals::Users,
                ArrivalsFile::Recorded { rate } => Arrivals::Recorded { rate },
                ArrivalsFile::Poisson { per_second } => Arrivals::Poisson { per_second },
                ArrivalsFile::Bursts { per_second, variation } => Arrivals::Bursts { per_second, variation },
            }),
            routers: self.routers,
            prefix_aware: PrefixAware {
                prefix_length: self.routing.prefix_length.0,
                concurrency_threshold: self.routing.concurrency_threshold.0,
                spill: self.routing.spill,
                ..PrefixAware::default()
            },
            strategies: self.strategies.into_iter().map(|rule| rule.0).collect(),
            duration: self.duration.0,
            warm_up: self.warm_up.0,
            seeds: self.seeds,
            first_seed: 1,
            slo: Slo { ttft: self.slo.ttft.map(|span| span.0), token_gap: self.slo.token_gap.map(|span| span.0) },
            price_per_instance_hour: self.price_per_instance_hour.map(|price| price.0),
        })
    }
}

impl GroupFile {
    fn into_group(self) -> Group {
        let mut profile = self.profile.map_or_else(Profile::default, |profile| profile.0);
        if let Some(tokens) = self.kv_capacity_tokens {
            profile = profile.with_kv_capacity_tokens(tokens);
        }
        if let Some(tokens) = self.max_num_batched_tokens {
            profile = profile.with_max_num_batched_tokens(tokens);
        }
        if let Some(requests) = self.max_num_seqs {
            profile = profile.with_max_num_seqs(requests);
        }
        if let Some(factor) = self.slower {
            profile = profile.scaled(factor.0);
        }
        Group { instances: self.instances, profile: Arc::new(profile) }
    }
}

impl TryFrom<ChangeKeys> for ChangeFile {
    type Error = &'static str;

    fn try_from(keys: ChangeKeys) -> Result<ChangeFile, &'static str> {
        let ChangeKeys { at, add, cold_start, remove, fail, lasts } = keys;
        let change = match (add, remove, fail, cold_start, lasts) {
            (Some(instances), None, None, cold_start, None) => {
                FleetChange::Add { instances, cold_start: cold_start.map_or(Duration::ZERO, |span| span.0) }
            }
            (None, Some(instances), None, None, None) => FleetChange::Remove { instances },
            (None, None, Some(instance), None, Some(lasts)) => FleetChange::Fail { instance, lasts: lasts.0 },
            _ => return Err("a change is one of: add (with cold_start), remove, fail (with lasts)"),
        };
        Ok(ChangeFile(TimedChange { at: at.0, change }))
    }
}

impl Scenario {
    /// Checks what depends on more than one value; for those who changed some.
    ///
    /// # Errors
    /// When values do not fit together.
    pub fn check(&self) -> Result<(), InvalidScenario> {
        let refuse = |message: String| Err(InvalidScenario::Value { name: self.name.clone(), message });
        if self.fleet.groups.is_empty() || self.fleet.groups.iter().any(|group| group.instances == 0) {
            return refuse("fleet: every group needs at least 1 instance, and there must be a group".to_owned());
        }
        if self.strategies.is_empty() {
            return refuse("strategies: empty; name at least one".to_owned());
        }
        for (key, number) in [("seeds", self.seeds), ("routers", self.routers)] {
            if number == 0 {
                return refuse(format!("{key}: 0; at least 1"));
            }
        }
        if self.warm_up >= self.duration {
            return refuse("warm_up: must be shorter than duration, or nothing is measured".to_owned());
        }
        let late = self.changes.iter().find(|change| change.at >= self.duration);
        if let Some(late) = late {
            return refuse(format!("changes: \"{}\" comes after the end", late.change));
        }
        self.plan(0)?;
        Ok(())
    }
}
