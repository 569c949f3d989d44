//! What there is of an endpoint or a component, and how far its change has come. Lies in the store, so that a restart
//! goes on where a crash stopped it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::plan::Plan;
use crate::shapes::Timestamp;

/// What there is of one endpoint, in groups that are its variants, or of one inference component, which is one group.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    /// The last revision that was given to a group.
    pub(super) last_revision: u64,
    /// Instances or copies, of every group, oldest first.
    pub(super) units: Vec<Unit>,
    /// What each group should be when nothing is under way.
    pub(super) serving: BTreeMap<String, Side>,
    /// The change that is under way.
    pub(super) rollout: Option<Rollout>,
}

/// What a group should be: which revision of it, in how many units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Side {
    /// Units of another revision run something else.
    pub(super) revision: u64,
    /// How many.
    pub(super) count: u32,
}

/// An instance of a variant, or a copy of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unit {
    /// Its variant or its component.
    pub(super) group: String,
    /// Which revision of that.
    pub(super) revision: u64,
    /// Its number in the group, unique among all revisions.
    pub(super) ordinal: u32,
    /// The instance that a copy lies on.
    pub(super) host: Option<String>,
    /// Where it is in its life.
    pub(super) phase: Phase,
    /// Where it was last reached.
    pub(super) url: Option<String>,
}

/// Where a unit is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// It has no place yet.
    Wanted,
    /// It was ordered and does not answer yet.
    Starting,
    /// It takes requests.
    InService,
    /// It takes nothing new.
    Draining {
        /// Since when.
        since: Timestamp,
    },
    /// It is being ended.
    Stopping,
}

/// A change under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Rollout {
    /// What kind of change.
    pub(super) kind: Kind,
    /// When it was asked for.
    pub(super) started_at: Timestamp,
    /// In which steps.
    pub(super) plan: Plan,
    /// What becomes of each group.
    pub(super) groups: Vec<GroupChange>,
    /// How many of the plan's steps were taken.
    pub(super) step: usize,
    /// The share of traffic that what is new gets, 0 to 1.
    pub(super) share: f64,
    /// What is being done.
    pub(super) stage: Stage,
    /// Why it is being taken back, if it is.
    pub(super) back: Option<String>,
}

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    /// There was nothing.
    Create,
    /// Something else shall run.
    Update,
    /// More or less of the same.
    Adjust,
    /// Copies move away from instances that leave; nobody asked for it.
    Move,
    /// Everything goes.
    Delete,
}

/// What becomes of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GroupChange {
    /// Its name.
    pub(super) name: String,
    /// What it was.
    pub(super) old: Option<Side>,
    /// What it shall be. Of the same revision, its units stay.
    pub(super) new: Option<Side>,
}

/// What is being done in a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    /// The units that the next step needs come.
    Provisioning,
    /// Traffic has moved by a step, and is watched.
    Baking {
        /// Since when.
        since: Timestamp,
    },
    /// All traffic has moved; what was stays a while.
    Waiting {
        /// Since when.
        since: Timestamp,
    },
    /// What is no longer wanted goes.
    Retiring,
    /// It could be neither done nor taken back.
    Stuck,
}

impl Unit {
    /// The id under which requests are routed to it.
    pub(super) fn id(&self) -> String {
        format!("{}-{}", self.group, self.ordinal)
    }

    /// Whether it is in service and stays.
    pub(super) fn serves(&self) -> bool {
        self.phase == Phase::InService
    }

    /// Whether it is on its way out.
    pub(super) fn leaves(&self) -> bool {
        matches!(self.phase, Phase::Draining { .. } | Phase::Stopping)
    }
}

impl GroupChange {
    /// Whether its units stay.
    pub(super) fn is_in_place(&self) -> bool {
        self.old.zip(self.new).is_some_and(|(old, new)| old.revision == new.revision)
    }
}

impl Progress {
    /// Adds a unit with the lowest free ordinal of its group.
    pub(super) fn add_unit(&mut self, group: &str, revision: u64, phase: Phase) {
        let is_free = |ordinal: &u32| !self.units.iter().any(|unit| unit.group == group && unit.ordinal == *ordinal);
        let ordinal = (0..).find(is_free).unwrap_or(u32::MAX);
        self.units.push(Unit { group: group.to_owned(), revision, ordinal, host: None, phase, url: None });
    }

    /// Whether a unit comes or goes, or a change is about to make one.
    pub(super) fn is_moving(&self) -> bool {
        let stage = self.rollout.as_ref().map(|rollout| rollout.stage);
        matches!(stage, Some(Stage::Provisioning | Stage::Retiring)) || self.units.iter().any(|unit| !unit.serves())
    }

    /// How many milliseconds the change waits for nothing but time; `None` where it doesn't.
    pub(super) fn waits(&self, now: Timestamp) -> Option<u64> {
        let rollout = self.rollout.as_ref()?;
        let (since, wait) = match rollout.stage {
            Stage::Baking { since } => (since, rollout.plan.wait),
            Stage::Waiting { since } => (since, rollout.plan.termination_wait),
            Stage::Provisioning | Stage::Retiring | Stage::Stuck => return None,
        };
        Some((since.milliseconds() + wait).saturating_sub(now.milliseconds()))
    }
}
