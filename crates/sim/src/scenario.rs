//! A scenario: which fleet, which workload, which strategies, for how long.

mod file;
pub(crate) mod quantity;
mod shipped;
mod workload;

use std::sync::Arc;
use std::time::Duration;

use isotherm_core::PrefixAware;
use isotherm_engine_model::Profile;
use isotherm_workload::{Arrivals, InvalidWorkload, Plan, Workload};

pub use self::shipped::{Shipped, shipped};
use crate::strategy::Rule;

/// Everything that a simulation needs to know but the seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its short name.
    pub name: String,
    /// What it is about, in a line.
    pub title: String,
    /// What was chosen so that the outcome fits a measurement of others; empty where nothing was.
    pub fitted: Vec<String>,
    /// What follows, and can be compared with what others measured.
    pub predicted: Vec<String>,
    /// The fleet at the start.
    pub fleet: Fleet,
    /// How the fleet changes.
    pub changes: Vec<TimedChange>,
    /// What clients send.
    pub workload: Workload,
    /// When it comes; `None` for the workload's own way.
    pub arrivals: Option<Arrivals>,
    /// How many routers the requests are spread over at random, at least 1.
    pub routers: u32,
    /// The parameters of `PREFIX_AWARE` where a strategy does not bring its own.
    pub prefix_aware: PrefixAware,
    /// What to compare; the first is the baseline.
    pub strategies: Vec<Rule>,
    /// Virtual time until no more requests are sent.
    pub duration: Duration,
    /// Requests sent before this only warm the fleet.
    pub warm_up: Duration,
    /// How many seeds.
    pub seeds: u32,
    /// The first of them; the others follow it. 1 unless asked otherwise.
    pub first_seed: u64,
    /// What counts as a good answer.
    pub slo: Slo,
    /// What an instance costs an hour, in any currency.
    pub price_per_instance_hour: Option<f64>,
}

impl Scenario {
    /// Reads a scenario. `name` is what it is called unless it says so itself.
    ///
    /// # Errors
    /// When it is no valid scenario; the error says where and why.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, InvalidScenario> {
        file::parse(name, text)
    }

    /// What clients send, with one seed.
    ///
    /// # Errors
    /// When the workload could not produce a request, or cannot arrive so.
    pub fn plan(&self, seed: u64) -> Result<Plan, InvalidWorkload> {
        match self.arrivals {
            Some(arrivals) => Plan::with_arrivals(self.workload.clone(), arrivals, seed),
            None => Plan::new(self.workload.clone(), seed),
        }
    }

    /// How many users there are; none in open loop.
    ///
    /// # Errors
    /// Those of [`plan`](Self::plan).
    pub fn users(&self) -> Result<u32, InvalidWorkload> {
        Ok(self.plan(0)?.users())
    }
}

impl Scenario {
    /// The same scenario with so many times the load: more users, or more arrivals a second.
    #[must_use]
    pub fn with_load(mut self, factor: f64) -> Scenario {
        self.arrivals = match self.arrivals {
            None if self.users().is_ok_and(|users| users == 0) => Some(Arrivals::Recorded { rate: factor }),
            Some(Arrivals::Recorded { rate }) => Some(Arrivals::Recorded { rate: rate * factor }),
            Some(Arrivals::Poisson { per_second }) => Some(Arrivals::Poisson { per_second: per_second * factor }),
            Some(Arrivals::Bursts { per_second, variation }) => {
                Some(Arrivals::Bursts { per_second: per_second * factor, variation })
            }
            users => {
                workload::multiply_users(&mut self.workload, factor);
                users
            }
        };
        self
    }
}

/// The instances at the start.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// At least one group.
    pub groups: Vec<Group>,
}

/// Instances that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// How many, at least 1.
    pub instances: u32,
    /// What runs on each.
    pub profile: Arc<Profile>,
}

impl Fleet {
    /// How many instances there are.
    pub fn instances(&self) -> u32 {
        self.groups.iter().map(|group| group.instances).sum()
    }

    /// The profile of each instance.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = Arc<Profile>> {
        self.groups.iter().flat_map(|group| (0..group.instances).map(|_| Arc::clone(&group.profile)))
    }

    /// What instances run that are added later.
    pub(crate) fn first_profile(&self) -> Arc<Profile> {
        Arc::clone(&self.groups[0].profile)
    }

    /// The same mixture of instances in another number.
    #[must_use]
    pub fn resized(&self, instances: u32) -> Fleet {
        let profiles: Vec<_> = self.profiles().collect();
        let groups = (0..instances as usize).map(|number| {
            let profile = Arc::clone(&profiles[number % profiles.len()]);
            Group { instances: 1, profile }
        });
        Fleet { groups: groups.collect() }
    }
}

/// A change of the fleet and when it happens.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedChange {
    /// Since the start.
    pub at: Duration,
    /// What happens.
    pub change: FleetChange,
}

/// How a fleet changes.
#[derive(Clone, Debug, PartialEq)]
pub enum FleetChange {
    /// Instances of the first group's kind are started.
    Add {
        /// How many.
        instances: u32,
        /// How long each takes to load its model, paid for and without serving.
        cold_start: Duration,
    },
    /// The youngest instances get nothing new and leave when they have answered what they have.
    Remove {
        /// How many.
        instances: u32,
    },
    /// An instance breaks down: what it has is lost, its cache too.
    Fail {
        /// Which, from 0.
        instance: u32,
        /// How long until it serves again.
        lasts: Duration,
    },
}

impl std::fmt::Display for FleetChange {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FleetChange::Add { instances, .. } => write!(formatter, "{instances} more"),
            FleetChange::Remove { instances } => write!(formatter, "{instances} fewer"),
            FleetChange::Fail { instance, .. } => write!(formatter, "instance-{instance} fails"),
        }
    }
}

/// What a good answer is: every condition that is given must hold.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Slo {
    /// The first token comes within this time.
    pub ttft: Option<Duration>,
    /// The tokens after it come at this mean distance or less.
    pub token_gap: Option<Duration>,
}

/// Why there is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum InvalidScenario {
    /// The text does not have the form of a scenario.
    #[error("{name}: {message}")]
    Form {
        /// The scenario or its file.
        name: String,
        /// What is wrong, with line and column.
        message: String,
    },
    /// A value does not fit the others.
    #[error("{name}: {message}")]
    Value {
        /// The scenario or its file.
        name: String,
        /// What is wrong, with the keys that lead to it.
        message: String,
    },
    /// The workload cannot be planned.
    #[error("workload: {0}")]
    Workload(#[from] InvalidWorkload),
}
