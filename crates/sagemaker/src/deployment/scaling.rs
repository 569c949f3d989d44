//! Managed instance scaling: the number of a variant's instances follows the copies that lie on them.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use super::hosts::{Capacity, Host};
use super::placing::{choose, hosts, need};
use super::plan::Plan;
use super::progress::{Kind, Phase, Unit};
use super::rollout::{GroupGoal, begin};
use super::state::{ComponentState, EndpointState};
use crate::providers::Providers;
use crate::records::VariantRecord;
use crate::shapes::{ManagedInstanceScaling, ScaleInStrategy, Timestamp};

/// How long an instance holds nothing before it is given up, where nothing is said (SageMaker's default).
const COOLDOWN: Duration = Duration::from_secs(20 * 60);

/// Since when each variant could do with fewer instances, by endpoint and variant.
#[derive(Debug)]
pub(super) struct Scaling {
    spare_since: HashMap<(String, String), Timestamp>,
    speed: NonZeroU32,
}

impl Scaling {
    /// With nothing seen yet; cool-downs pass so many times faster than they say.
    pub(super) fn at_speed(speed: NonZeroU32) -> Scaling {
        Scaling { spare_since: HashMap::new(), speed }
    }

    /// Begins to change the number of instances of variants whose scaling is managed and that need more, or could do
    /// with fewer. Returns the ids of instances that are chosen to go.
    pub(super) fn follow(
        &mut self,
        key: &str,
        state: &mut EndpointState,
        providers: &Providers,
        now: Timestamp,
    ) -> HashSet<String> {
        let mut chosen = HashSet::new();
        let Some(record) = state.record.clone() else { return chosen };
        // A change that was asked for comes first; so does one of ours that is under way.
        if record.transition.is_some() || state.progress.rollout.is_some() {
            return chosen;
        }
        let mut counts: Vec<(String, u32)> = Vec::new();
        for variant in &record.serving.variants {
            let name = variant.config.variant_name.clone();
            let desired = variant.desired_instance_count;
            let count = match variant.config.managed_scaling() {
                None => desired,
                Some(scaling) => {
                    let more = more(state, variant, scaling, providers);
                    let spare =
                        if more > 0 { Vec::new() } else { self.spare(key, state, variant, scaling, providers, now) };
                    let fewer = u32::try_from(spare.len()).unwrap_or(0);
                    chosen.extend(spare);
                    let bounded = (desired + more).max(scaling.min_instance_count.unwrap_or(0));
                    bounded.saturating_sub(fewer)
                }
            };
            counts.push((name, count));
        }
        let changes = |variant: &VariantRecord| {
            counts
                .iter()
                .any(|(name, count)| *name == variant.config.variant_name && *count != variant.desired_instance_count)
        };
        if record.serving.variants.iter().any(changes) {
            change(state, &counts, now);
        }
        chosen
    }

    /// The instances to give up now: at most as many as the policy allows, and none before they were spare for its
    /// cool-down.
    fn spare(
        &mut self,
        key: &str,
        state: &EndpointState,
        variant: &VariantRecord,
        scaling: &ManagedInstanceScaling,
        providers: &Providers,
        now: Timestamp,
    ) -> Vec<String> {
        let policy = scaling.scale_in_policy.as_ref();
        let name = &variant.config.variant_name;
        let consolidates = policy.is_some_and(|policy| policy.strategy == ScaleInStrategy::Consolidation);
        let spare = spare_now(state, name, consolidates, providers);
        let least = scaling.min_instance_count.unwrap_or(0);
        let may_go = variant.desired_instance_count.saturating_sub(least) as usize;
        let entry = (key.to_owned(), name.clone());
        if spare.is_empty() || may_go == 0 {
            self.spare_since.remove(&entry);
            return Vec::new();
        }
        let since = *self.spare_since.entry(entry.clone()).or_insert(now);
        let minutes = policy.and_then(|policy| policy.cooldown_in_minutes);
        let cooldown = minutes.map_or(COOLDOWN, |minutes| Duration::from_secs(u64::from(minutes) * 60));
        if since.until(now) < cooldown / self.speed.get() {
            return Vec::new();
        }
        self.spare_since.remove(&entry);
        let step = policy.and_then(|policy| policy.maximum_step_size).unwrap_or(1) as usize;
        spare.into_iter().take(may_go.min(step)).collect()
    }
}

/// How many instances more the copies need that have no place.
fn more(
    state: &EndpointState,
    variant: &VariantRecord,
    scaling: &ManagedInstanceScaling,
    providers: &Providers,
) -> u32 {
    let Some(record) = &state.record else { return 0 };
    let most = scaling.max_instance_count.unwrap_or(variant.desired_instance_count);
    let room = most.saturating_sub(variant.desired_instance_count);
    let instance_type = super::orders::instance_type(&record.serving, variant, providers);
    let mut added: Vec<Host> = Vec::new();
    for (component, copy) in wanted(state, &variant.config.variant_name) {
        if let Some(at) = choose(component, copy, &added) {
            take(&mut added[at], component, copy);
        } else if added.len() < room as usize {
            let mut host = Host {
                id: format!("new-{}", added.len()),
                capacity: Capacity::of_instance(&instance_type),
                taken: Capacity::NONE,
                copies: 0,
                all_copies: 0,
                instance_type: instance_type.clone(),
            };
            // One that fits not even an empty instance is no reason for another one.
            if choose(component, copy, std::slice::from_ref(&host)).is_some() {
                take(&mut host, component, copy);
                added.push(host);
            }
        }
    }
    u32::try_from(added.len()).unwrap_or(u32::MAX)
}

fn wanted<'a>(state: &'a EndpointState, variant: &'a str) -> impl Iterator<Item = (&'a ComponentState, &'a Unit)> {
    let on_it = state.components.iter().filter(move |one| one.record.variant_name.as_deref() == Some(variant));
    let copies = on_it.flat_map(|component| component.progress.units.iter().map(move |unit| (component, unit)));
    copies.filter(|(_, unit)| unit.phase == Phase::Wanted)
}

fn take(host: &mut Host, component: &ComponentState, copy: &Unit) {
    host.taken = host.taken.plus(need(component, copy, &host.instance_type));
    host.all_copies += 1;
}

/// The instances that nothing lies on, youngest first; where there is none and copies may move, the youngest whose
/// copies fit on the others.
fn spare_now(state: &EndpointState, variant: &str, consolidates: bool, providers: &Providers) -> Vec<String> {
    let of_variant = |unit: &&Unit| unit.group == variant && unit.serves();
    let instances: Vec<String> = state.progress.units.iter().filter(of_variant).map(Unit::id).collect();
    let copies = || state.components.iter().flat_map(|it| it.progress.units.iter().map(move |unit| (it, unit)));
    let is_empty = |id: &&String| copies().all(|(_, copy)| copy.host.as_ref() != Some(*id));
    let idle: Vec<String> = instances.iter().rev().filter(is_empty).cloned().collect();
    if !idle.is_empty() || !consolidates || instances.len() < 2 {
        return idle;
    }
    let fits_elsewhere = |id: &&String| {
        let Some(at) = state.components.iter().position(|it| it.record.variant_name.as_deref() == Some(variant)) else {
            return false;
        };
        let mut others = hosts(state, providers, at);
        others.retain(|host| host.id != **id);
        copies().filter(|(_, copy)| copy.host.as_ref() == Some(*id)).all(|(component, copy)| {
            let found = choose(component, copy, &others);
            if let Some(at) = found {
                take(&mut others[at], component, copy);
            }
            found.is_some()
        })
    };
    instances.iter().rev().find(fits_elsewhere).cloned().into_iter().collect()
}

/// Begins the change that nobody asked for: the endpoint stays in service meanwhile.
fn change(state: &mut EndpointState, counts: &[(String, u32)], now: Timestamp) {
    let Some(record) = &mut state.record else { return };
    for variant in &mut record.serving.variants {
        if let Some((_, count)) = counts.iter().find(|(name, _)| *name == variant.config.variant_name) {
            variant.desired_instance_count = *count;
        }
    }
    let goal = |variant: &VariantRecord| GroupGoal {
        name: variant.config.variant_name.clone(),
        count: variant.desired_instance_count,
        in_place: true,
    };
    let goals: Vec<_> = record.serving.all_variants().map(goal).collect();
    begin(&mut state.progress, Kind::Adjust, now, &goals, |_| Plan::at_once());
}
