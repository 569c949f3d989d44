//! One look at one endpoint: everything on it goes as far as it can go now.

use std::collections::{HashMap, HashSet};

use isotherm_fleet::Owner;
use tracing::info;

use super::adapters::Adapters;
use super::goals::{begin_component, begin_endpoint};
use super::look::{CopyFacts, InstanceFacts, Surroundings};
use super::orders::{copy_key, instance_key};
use super::placing::place_copies;
use super::plan::Plan;
use super::progress::{Kind, Unit};
use super::report::{finish_component, finish_endpoint, report_component, report_endpoint, settle_for};
use super::rollout::{End, Facts, GroupGoal, Patience, UnitStanding, advance, begin};
use super::scaling::Scaling;
use super::state::{ComponentState, EndpointState};
use crate::records::{ComponentTransition, Transition};

/// How many steps one look takes at most; the next one goes on.
const MOST_STEPS: usize = 32;

/// What it takes to look at an endpoint.
pub(super) struct Pass<'a> {
    pub(super) key: &'a str,
    pub(super) around: Surroundings<'a>,
    pub(super) patience: Patience,
    pub(super) adapters: &'a mut Adapters,
    pub(super) scaling: &'a mut Scaling,
}

impl Pass<'_> {
    /// Takes every step that can be taken now.
    pub(super) fn think(mut self, state: &mut EndpointState) {
        for _ in 0..MOST_STEPS {
            let before = state.clone();
            self.step(state);
            if *state == before {
                return;
            }
        }
    }

    fn step(&mut self, state: &mut EndpointState) {
        self.note_urls(state);
        if let Some(record) = &state.record
            && begin_endpoint(record, &mut state.progress)
        {
            info!(endpoint = record.identity.name, status = record.status.as_str(), "begins to change");
        }
        self.begin_components(state);
        let providers = self.around.ordered.providers();
        let obstacles = place_copies(state, providers);
        let has_components = state.record.as_ref().is_some_and(|record| record.serving.has_components());
        // Only what found no place on the instances that there are is a reason for more.
        let chosen = if has_components {
            self.scaling.follow(self.key, state, providers, self.around.now)
        } else {
            HashSet::new()
        };
        self.advance_components(state, &obstacles);
        self.advance_endpoint(state, has_components, chosen);
        self.report(state);
    }

    /// Keeps where units are reached, so that a static provider can give each its own again after a restart.
    fn note_urls(&self, state: &mut EndpointState) {
        let Some(record) = &state.record else { return };
        let note = |unit: &mut Unit, key: String| {
            if let Some(reached) = self.around.ordered.reached(&key) {
                unit.url = Some(reached.url.to_string());
            }
        };
        for unit in &mut state.progress.units {
            note(unit, instance_key(record, unit));
        }
        for component in &mut state.components {
            for unit in &mut component.progress.units {
                note(unit, copy_key(&component.record, unit));
            }
        }
    }

    fn begin_components(&mut self, state: &mut EndpointState) {
        for at in 0..state.components.len() {
            if state.components[at].record.base().is_some() {
                self.adapters.follow(state, at, self.around.ordered, self.around.now);
                continue;
            }
            let ComponentState { record, progress, .. } = &mut state.components[at];
            begin_component(record, progress);
            let facts = CopyFacts { around: &self.around, record, hosts: &state.progress, obstacles: HashMap::new() };
            let loses_host = progress.units.iter().any(|unit| !unit.leaves() && facts.loses_host(unit));
            if loses_host && progress.rollout.is_none() {
                let count = progress.serving.get(&record.identity.name).map_or(0, |side| side.count);
                let goal = GroupGoal { name: record.identity.name.clone(), count, in_place: true };
                begin(progress, Kind::Move, self.around.now, &[goal], |_| Plan::at_once());
            }
        }
    }

    fn advance_components(&self, state: &mut EndpointState, obstacles: &HashMap<String, String>) {
        for component in state.components.iter_mut().filter(|component| component.record.base().is_none()) {
            let ComponentState { record, progress, gone } = component;
            let kind = progress.rollout.as_ref().map(|rollout| rollout.kind);
            let facts =
                CopyFacts { around: &self.around, record, hosts: &state.progress, obstacles: obstacles.clone() };
            let Some(end) = advance(progress, self.patience, &facts) else { continue };
            if kind == Some(Kind::Move) {
                continue;
            }
            info!(component = record.identity.name, ?end, "has changed");
            if matches!((&record.transition, &end), (Some(ComponentTransition::Delete { .. }), End::Done)) {
                *gone = true;
            } else {
                finish_component(record, &end, progress, self.around.now);
            }
        }
    }

    fn advance_endpoint(&self, state: &mut EndpointState, has_components: bool, chosen: HashSet<String>) {
        let Some(record) = &mut state.record else { return };
        let is_taken = |name: &str| {
            let topology = self.around.fleet.topology();
            topology.endpoint(name).is_some_and(|endpoint| endpoint.owner() == Owner::File)
        };
        if matches!(record.transition, Some(Transition::Create { .. })) && is_taken(self.around.fleet_name) {
            let reason = "Isotherm's configuration file has an endpoint of this name: choose another name.";
            state.progress = Default::default();
            finish_endpoint(record, &End::RolledBack(reason.to_owned()), &state.progress, self.around.now);
            return;
        }
        let copies = state.components.iter().flat_map(|component| &component.progress.units);
        let holding = has_components.then(|| copies.filter_map(|unit| unit.host.clone()).collect());
        let facts = InstanceFacts { around: &self.around, record, holding, chosen };
        let Some(end) = advance(&mut state.progress, self.patience, &facts) else { return };
        info!(endpoint = record.identity.name, ?end, "has changed");
        match (&record.transition, &end) {
            (Some(Transition::Delete { .. }), End::Done) => state.record = None,
            // Managed scaling's own change.
            (None, _) => {}
            (transition, end) => {
                let settles = matches!((transition, end), (Some(Transition::Adjust { .. }), End::RolledBack(_)));
                finish_endpoint(record, end, &state.progress, self.around.now);
                if settles {
                    settle_for(record, &state.progress.serving);
                }
            }
        }
    }

    fn report(&self, state: &mut EndpointState) {
        let providers = self.around.ordered.providers();
        for at in 0..state.components.len() {
            let component = &state.components[at];
            if component.record.base().is_none() {
                let runs = |unit: &&Unit| {
                    let key = copy_key(&component.record, unit);
                    unit.serves() && self.around.ordered.standing(&key) == UnitStanding::Running
                };
                let hosts = component.progress.units.iter().filter(runs);
                let kind = |unit: &Unit| state.instance_type(unit.host.as_deref()?, providers);
                let places: Vec<_> = hosts.filter_map(kind).collect();
                report_component(&mut state.components[at].record, &places);
            }
        }
        let EndpointState { record: Some(record), progress, .. } = state else { return };
        let is_place = record.serving.has_components();
        let keyed = record.clone();
        let runs = |unit: &Unit| {
            is_place || self.around.ordered.standing(&instance_key(&keyed, unit)) == UnitStanding::Running
        };
        report_endpoint(record, progress, runs);
    }
}
