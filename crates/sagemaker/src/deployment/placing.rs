//! Gives copies that are wanted a place, and tells why one gets none.

use std::collections::HashMap;

use super::hosts::{Capacity, Host, place};
use super::orders::{instance_type, plan_of, side, specification};
use super::progress::{Phase, Progress, Unit};
use super::state::{ComponentState, EndpointState};
use crate::providers::Providers;

/// Places copies of an endpoint's components on its instances, oldest first. Returns why some got no place, by the ids
/// of the copies, where waiting is pointless: nothing comes, and nothing goes.
pub(super) fn place_copies(state: &mut EndpointState, providers: &Providers) -> HashMap<String, String> {
    let mut obstacles = HashMap::new();
    for at in 0..state.components.len() {
        for index in 0..state.components[at].progress.units.len() {
            if state.components[at].progress.units[index].phase != Phase::Wanted {
                continue;
            }
            let hosts = hosts(state, providers, at);
            match choose(&state.components[at], &state.components[at].progress.units[index], &hosts) {
                Some(host) => {
                    let unit = &mut state.components[at].progress.units[index];
                    unit.host = Some(hosts[host].id.clone());
                    unit.phase = Phase::Starting;
                }
                None if may_find_room(state) => {}
                None => {
                    let unit = &state.components[at].progress.units[index];
                    obstacles.insert(unit.id(), no_room(&state.components[at], unit, &hosts));
                }
            }
        }
    }
    obstacles
}

/// The instances that the component at this place may lie on, with what is taken of them.
pub(super) fn hosts(state: &EndpointState, providers: &Providers, at: usize) -> Vec<Host> {
    let Some(record) = &state.record else { return Vec::new() };
    let component = &state.components[at];
    let may_hold = |unit: &&Unit| unit.serves() && Some(&unit.group) == component.record.variant_name.as_ref();
    let host = |unit: &Unit| {
        let deployed = side(record, &state.progress, unit);
        let variant = deployed.variants.iter().find(|variant| variant.config.variant_name == unit.group)?;
        let instance_type = instance_type(deployed, variant, providers);
        let (id, capacity) = (unit.id(), Capacity::of_instance(&instance_type));
        let mut host = Host { id, capacity, taken: Capacity::NONE, copies: 0, all_copies: 0, instance_type };
        for (index, other) in state.components.iter().enumerate() {
            for copy in other.progress.units.iter().filter(|copy| copy.host.as_deref() == Some(&host.id)) {
                host.taken = host.taken.plus(need(other, copy, &host.instance_type));
                host.copies += u32::from(index == at && !copy.leaves());
                host.all_copies += 1;
            }
        }
        Some(host)
    };
    state.progress.units.iter().filter(may_hold).filter_map(host).collect()
}

/// The host for a copy, among those that its component has a specification for.
pub(super) fn choose(component: &ComponentState, unit: &Unit, hosts: &[Host]) -> Option<usize> {
    let plan = plan_of(&component.record, &component.progress, unit);
    let mut order: Vec<usize> = (0..hosts.len()).collect();
    order.retain(|&at| specification(plan, &hosts[at].instance_type).is_some());
    // Each kind of instance may have a need of its own: the first kind that has room.
    let mut kinds: Vec<&str> = Vec::new();
    for &at in &order {
        if !kinds.contains(&hosts[at].instance_type.as_str()) {
            kinds.push(&hosts[at].instance_type);
        }
    }
    kinds.iter().find_map(|kind| {
        let specification = specification(plan, kind)?;
        let of_kind: Vec<usize> = order.iter().copied().filter(|&at| hosts[at].instance_type == *kind).collect();
        let candidates: Vec<Host> = of_kind.iter().map(|&at| hosts[at].clone()).collect();
        let strategy = specification.scheduling_config.as_ref().map(|scheduling| scheduling.placement_strategy);
        let copy = Capacity::of_copy(specification.compute_resource_requirements.as_ref());
        place(&candidates, copy, strategy).map(|chosen| of_kind[chosen])
    })
}

/// What a copy takes of an instance of this kind.
pub(super) fn need(component: &ComponentState, unit: &Unit, instance_type: &str) -> Capacity {
    let plan = plan_of(&component.record, &component.progress, unit);
    let specification = specification(plan, instance_type);
    Capacity::of_copy(specification.and_then(|it| it.compute_resource_requirements.as_ref()))
}

/// Whether room may come by itself: instances come or go, copies go, or managed scaling can still add an instance.
fn may_find_room(state: &EndpointState) -> bool {
    let moves = |progress: &Progress| progress.is_moving();
    let copies_leave = state.components.iter().flat_map(|component| &component.progress.units).any(Unit::leaves);
    moves(&state.progress) || copies_leave || can_grow(state)
}

fn can_grow(state: &EndpointState) -> bool {
    state.record.iter().flat_map(|record| &record.serving.variants).any(|variant| {
        let most = variant.config.managed_scaling().and_then(|scaling| scaling.max_instance_count);
        most.is_some_and(|most| variant.desired_instance_count < most)
    })
}

fn no_room(component: &ComponentState, unit: &Unit, hosts: &[Host]) -> String {
    let name = component.record.variant_name.as_deref().unwrap_or_default();
    let Some(host) = hosts.first() else {
        return format!("Variant {name} has no instance: raise its number of instances.");
    };
    let need = need(component, unit, &host.instance_type);
    let whole = host.capacity.map_or_else(
        || host.instance_type.clone(),
        |whole| format!("{} with {} accelerators and {} MiB", host.instance_type, whole.accelerators, whole.memory),
    );
    format!(
        "No instance of variant {name} has room for a copy that needs {} accelerators and {} MiB of memory: it has {} \
         of {whole}. Raise the number of instances, or require less.",
        need.accelerators,
        need.memory,
        hosts.len()
    )
}
