//! The state machine of a change: what is known of the units and the time in, the next state out.
//!
//! It does nothing itself. A unit that is `Starting` is to be ordered by whoever drives, one that is `Stopping` to be
//! ended; how that goes comes back as [`Facts`]. Every state can be kept, and gone on from.

#[cfg(test)]
mod tests;

use super::plan::{Plan, Size};
use super::progress::{GroupChange, Kind, Phase, Progress, Rollout, Side, Stage, Unit};
use crate::shapes::Timestamp;

/// What is known of the world when the machine is asked for its next state.
pub(super) trait Facts {
    /// The time.
    fn now(&self) -> Timestamp;
    /// How an ordered unit stands.
    fn standing(&self, unit: &Unit) -> UnitStanding;
    /// Whether nothing is in flight on a unit.
    fn is_idle(&self, unit: &Unit) -> bool;
    /// One of these alarms that is in alarm.
    fn alarm(&self, names: &[String]) -> Option<String>;
    /// Whether units lie on instances, and have to wait for a place.
    fn needs_hosts(&self) -> bool {
        false
    }
    /// Whether the instance that a copy lies on is to go.
    fn loses_host(&self, _unit: &Unit) -> bool {
        false
    }
    /// Whether a unit is to go before others of its group when there are too many.
    fn leaves_first(&self, unit: &Unit) -> bool {
        self.loses_host(unit)
    }
    /// Why a unit that is wanted gets no place, when waiting longer is pointless.
    fn obstacle(&self, _unit: &Unit) -> Option<String> {
        None
    }
}

/// How a unit stands at its provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UnitStanding {
    /// It is coming, or going.
    Moving,
    /// It answers.
    Running,
    /// It will not come, and why.
    Failed(String),
    /// There is nothing of it.
    Gone,
}

/// How patient the machine is. Times are in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// How long a draining unit is watched at least: a request that was just placed is not in flight yet.
    pub(super) settle: u64,
    /// How long requests in flight may take to end.
    pub(super) drain: u64,
}

/// How a change ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// What was wanted is.
    Done,
    /// What was is again; why.
    RolledBack(String),
    /// Neither; why.
    Stuck(String),
}

/// What a group shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupGoal {
    /// Its name.
    pub(super) name: String,
    /// In how many units.
    pub(super) count: u32,
    /// Whether the units that there are can stay.
    pub(super) in_place: bool,
}

/// Begins a change to these groups, in place of one that may be under way.
pub(super) fn begin(
    progress: &mut Progress,
    kind: Kind,
    started_at: Timestamp,
    goals: &[GroupGoal],
    plan: impl FnOnce(&[Size]) -> Plan,
) {
    let revision = progress.last_revision + 1;
    let mut groups: Vec<GroupChange> = Vec::new();
    for goal in goals {
        let old = progress.serving.get(&goal.name).copied();
        let kept = old.filter(|_| goal.in_place).map(|old| old.revision);
        let new = Side { revision: kept.unwrap_or(revision), count: goal.count };
        groups.push(GroupChange { name: goal.name.clone(), old, new: Some(new) });
    }
    for (name, &old) in &progress.serving {
        if !goals.iter().any(|goal| goal.name == *name) {
            groups.push(GroupChange { name: name.clone(), old: Some(old), new: None });
        }
    }
    let size = |group: &GroupChange| {
        let new = group.new.filter(|_| !group.is_in_place())?;
        Some(Size { old: group.old.map_or(0, |old| old.count), new: new.count })
    };
    let sizes: Vec<_> = groups.iter().filter_map(size).collect();
    progress.last_revision = revision;
    let (stage, share) = if kind == Kind::Delete { (Stage::Retiring, 1.0) } else { (Stage::Provisioning, 0.0) };
    let plan = plan(&sizes);
    progress.rollout = Some(Rollout { kind, started_at, plan, groups, step: 0, share, stage, back: None });
}

/// Goes as far as the facts allow; tells when a change has ended with that.
pub(super) fn advance(progress: &mut Progress, patience: Patience, facts: &impl Facts) -> Option<End> {
    loop {
        let before = progress.clone();
        progress.follow(patience, facts);
        if let Some(end) = progress.steer(facts) {
            return Some(end);
        }
        if *progress == before {
            return None;
        }
    }
}

impl Progress {
    /// Takes in what became of the units.
    fn follow(&mut self, patience: Patience, facts: &impl Facts) {
        let now = facts.now();
        for unit in &mut self.units {
            match unit.phase {
                Phase::Starting if facts.standing(unit) == UnitStanding::Running => unit.phase = Phase::InService,
                Phase::Draining { since } => {
                    let watched = since.until(now).as_millis();
                    let is_idle = watched >= patience.settle.into() && facts.is_idle(unit);
                    if is_idle || watched >= patience.drain.into() {
                        unit.phase = Phase::Stopping;
                    }
                }
                Phase::Wanted | Phase::Starting | Phase::InService | Phase::Stopping => {}
            }
        }
        self.units.retain(|unit| unit.phase != Phase::Stopping || facts.standing(unit) != UnitStanding::Gone);
    }

    /// Takes the change's next step, if it can be taken.
    fn steer(&mut self, facts: &impl Facts) -> Option<End> {
        let mut rollout = self.rollout.take()?;
        let end = match (rollout.stage, &rollout.back) {
            (Stage::Stuck, _) => None,
            (Stage::Retiring, _) => self.retire(&rollout, facts),
            (_, None) => self.go_forth(&mut rollout, facts),
            (_, Some(_)) => self.go_back(&mut rollout, facts),
        };
        match &end {
            Some(End::Done) => self.serving = sides(&rollout.groups, |group| group.new),
            Some(End::RolledBack(_)) => self.serving = sides(&rollout.groups, |group| group.old),
            Some(End::Stuck(_)) => {
                rollout.stage = Stage::Stuck;
                // What serves stays as it is; nothing else comes by itself later.
                self.give_up_coming();
                self.rollout = Some(rollout);
            }
            None => self.rollout = Some(rollout),
        }
        end
    }

    fn go_forth(&mut self, rollout: &mut Rollout, facts: &impl Facts) -> Option<End> {
        if let Some(reason) = self.trouble(rollout, facts) {
            // Nothing of what was coming is of use any more.
            self.give_up_coming();
            rollout.back = Some(reason);
            rollout.stage = Stage::Provisioning;
            return None;
        }
        let now = facts.now();
        match rollout.stage {
            Stage::Provisioning => {
                let share = rollout.plan.steps.get(rollout.step).copied().unwrap_or(1.0);
                if self.has(&rollout.needs_forth(share), facts) {
                    rollout.step += 1;
                    rollout.share = share;
                    rollout.stage = Stage::Baking { since: now };
                }
            }
            Stage::Baking { since } if since.until(now).as_millis() >= rollout.plan.wait.into() => {
                if rollout.step >= rollout.plan.steps.len() {
                    rollout.stage = Stage::Waiting { since: now };
                } else {
                    rollout.stage = Stage::Provisioning;
                    if rollout.plan.by_batches {
                        self.reduce(&rollout.changed(|group| group.old, 1.0 - rollout.share), facts);
                    }
                }
            }
            Stage::Waiting { since } if since.until(now).as_millis() >= rollout.plan.termination_wait.into() => {
                rollout.stage = Stage::Retiring;
            }
            Stage::Baking { .. } | Stage::Waiting { .. } | Stage::Retiring | Stage::Stuck => {}
        }
        None
    }

    fn go_back(&mut self, rollout: &mut Rollout, facts: &impl Facts) -> Option<End> {
        if let Some(problem) = self.failure(facts) {
            let first = rollout.back.as_deref().unwrap_or_default();
            return Some(End::Stuck(format!("{first} And it could not be taken back: {problem}")));
        }
        // A crumb of a share is none.
        let share = Some(rollout.share - rollout.plan.back_step).filter(|share| *share > 1e-6).unwrap_or(0.0);
        if self.has(&rollout.needs_back(share), facts) {
            rollout.share = share;
            if share == 0.0 {
                rollout.stage = Stage::Retiring;
            } else if rollout.plan.by_batches {
                self.reduce(&rollout.changed(|group| group.new, share), facts);
            }
        }
        None
    }

    /// Lets go whatever is not wanted in the end; ends the change when it is gone.
    fn retire(&mut self, rollout: &Rollout, facts: &impl Facts) -> Option<End> {
        let wanted = |group: &GroupChange| if rollout.back.is_some() { group.old } else { group.new };
        let wanted: Vec<_> = rollout.groups.iter().map(|group| (group.name.clone(), wanted(group))).collect();
        let side_of = |unit: &Unit| wanted.iter().find(|(name, _)| *name == unit.group).and_then(|(_, side)| *side);
        let now = facts.now();
        for unit in &mut self.units {
            if side_of(unit).is_none_or(|side| side.revision != unit.revision) {
                unit.let_go(now);
            }
        }
        for (name, side) in &wanted {
            if let Some(side) = side {
                self.keep(name, *side, facts);
            }
        }
        self.units.retain(|unit| unit.phase != Phase::Wanted);
        let is_done = !self.units.iter().any(Unit::leaves);
        is_done.then(|| rollout.back.clone().map_or(End::Done, End::RolledBack))
    }

    /// Lets go as many of the units of these sides as are too many.
    fn reduce(&mut self, sides: &[(String, Side)], facts: &impl Facts) {
        for (name, side) in sides {
            self.keep(name, *side, facts);
        }
    }

    /// Keeps so many units of a group and revision: those leave first that are to, then the youngest, so that
    /// most keys stay at home.
    fn keep(&mut self, name: &str, side: Side, facts: &impl Facts) {
        let now = facts.now();
        let stays = |unit: &Unit| unit.group == name && unit.revision == side.revision && !unit.leaves();
        let mut too_many = self.units.iter().filter(|unit| stays(unit)).count().saturating_sub(side.count as usize);
        for only_the_first in [true, false] {
            for unit in self.units.iter_mut().rev() {
                if too_many > 0 && stays(unit) && (!only_the_first || facts.leaves_first(unit)) {
                    unit.let_go(now);
                    too_many -= 1;
                }
            }
        }
    }

    /// Whether so many units of these serve, after having asked for what is missing.
    fn has(&mut self, needs: &[(String, Side)], facts: &impl Facts) -> bool {
        let mut complete = true;
        for (name, side) in needs {
            let counts = |unit: &&Unit| {
                unit.group == *name && unit.revision == side.revision && !unit.leaves() && !facts.loses_host(unit)
            };
            let there = self.units.iter().filter(counts).count();
            for _ in there..side.count as usize {
                let phase = if facts.needs_hosts() { Phase::Wanted } else { Phase::Starting };
                self.add_unit(name, side.revision, phase);
            }
            complete &= self.units.iter().filter(counts).filter(|unit| unit.serves()).count() >= side.count as usize;
        }
        complete
    }

    fn give_up_coming(&mut self) {
        self.units.retain(|unit| unit.phase != Phase::Wanted);
        for unit in self.units.iter_mut().filter(|unit| unit.phase == Phase::Starting) {
            unit.phase = Phase::Stopping;
        }
    }

    /// Why a change can't go on.
    fn trouble(&self, rollout: &Rollout, facts: &impl Facts) -> Option<String> {
        let overdue = || {
            let limit = rollout.plan.limit?;
            let is_overdue = rollout.started_at.until(facts.now()).as_millis() >= limit.into();
            is_overdue.then(|| format!("The update took longer than its maximum of {} seconds.", limit / 1_000))
        };
        let alarm = || {
            let name = facts.alarm(&rollout.plan.alarms)?;
            Some(format!("Alarm {name} is in state ALARM."))
        };
        self.failure(facts).or_else(alarm).or_else(overdue)
    }

    /// Why a unit that is to come doesn't.
    fn failure(&self, facts: &impl Facts) -> Option<String> {
        self.units.iter().find_map(|unit| match (unit.phase, facts.standing(unit)) {
            (Phase::Wanted, _) => facts.obstacle(unit),
            (Phase::Starting, UnitStanding::Failed(reason)) => Some(reason),
            _ => None,
        })
    }
}

impl Unit {
    /// Begins to let it go, unless that was begun.
    fn let_go(&mut self, now: Timestamp) {
        match self.phase {
            Phase::InService => self.phase = Phase::Draining { since: now },
            Phase::Starting => self.phase = Phase::Stopping,
            Phase::Wanted | Phase::Draining { .. } | Phase::Stopping => {}
        }
    }
}

impl Rollout {
    /// What has to serve before what is new gets this share.
    fn needs_forth(&self, share: f64) -> Vec<(String, Side)> {
        let in_place = self.groups.iter().filter(|group| group.is_in_place());
        let in_place = in_place.filter_map(|group| Some((group.name.clone(), group.new?)));
        in_place.chain(self.changed(|group| group.new, share)).collect()
    }

    /// What has to serve before what is new gets only this share.
    fn needs_back(&self, share: f64) -> Vec<(String, Side)> {
        let in_place = self.groups.iter().filter(|group| group.is_in_place());
        let in_place = in_place.filter_map(|group| Some((group.name.clone(), group.old?)));
        in_place.chain(self.changed(|group| group.old, 1.0 - share)).collect()
    }

    /// What one side of the groups that get other units comes to when it carries this share.
    fn changed(&self, side: impl Fn(&GroupChange) -> Option<Side>, share: f64) -> Vec<(String, Side)> {
        let part = |side: Side| {
            let exact = f64::from(side.count) * share;
            // Nine tenths of ten are nine, whatever the last bit says.
            let count = if self.plan.by_batches { (exact - 1e-6).ceil() as u32 } else { side.count };
            Side { count, ..side }
        };
        let changed = self.groups.iter().filter(|group| !group.is_in_place());
        changed.filter_map(|group| Some((group.name.clone(), part(side(group)?)))).collect()
    }
}

fn sides(
    groups: &[GroupChange],
    side: impl Fn(&GroupChange) -> Option<Side>,
) -> std::collections::BTreeMap<String, Side> {
    groups.iter().filter_map(|group| Some((group.name.clone(), side(group)?))).collect()
}
