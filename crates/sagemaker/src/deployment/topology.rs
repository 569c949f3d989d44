//! An endpoint as the fleet is to route it: what its record and its progress come to.

use std::num::NonZeroU32;
use std::sync::Arc;

use isotherm_config::{Health, Name, NameError, TrafficWeight};
use isotherm_core::Routing;
use isotherm_fleet::{AsyncOutput, ComponentKind, ManagedComponent, ManagedEndpoint, ManagedInstance, ManagedVariant};

use super::progress::{Kind, Phase, Progress, Unit};
use super::traffic::weight;
use crate::providers::Reached;
use crate::records::{ComponentTransition, Deployed, EndpointRecord, InferenceComponentRecord, VariantRecord};
use crate::routing;

/// A component of an endpoint, with what there is of it.
#[derive(Debug)]
pub(super) struct Hosted<'a> {
    pub(super) record: &'a InferenceComponentRecord,
    pub(super) progress: &'a Progress,
    /// The ids of the base's copies that hold it, where it is an adapter.
    pub(super) loaded_on: Vec<String>,
}

/// The name by which the fleet knows an endpoint: with its account, unless that is the router's own.
pub(super) fn fleet_name(record: &EndpointRecord, own_account: &str) -> Arc<str> {
    let identity = &record.identity;
    if identity.account == own_account {
        identity.name.as_str().into()
    } else {
        format!("{}/{}", identity.account, identity.name).into()
    }
}

/// What is to be routed; `None` while nothing of the endpoint may be called yet.
///
/// # Errors
///
/// A name that is none, which the constraints of the API rule out.
pub(super) fn topology<'a>(
    record: &EndpointRecord,
    progress: &Progress,
    hosted: &[Hosted<'a>],
    own_account: &str,
    reached: impl Fn(Option<&'a InferenceComponentRecord>, &Unit) -> Option<Reached>,
) -> Result<Option<ManagedEndpoint>, NameError> {
    let rollout = progress.rollout.as_ref();
    let is_coming = rollout.is_some_and(|rollout| rollout.kind == Kind::Create && rollout.share == 0.0);
    if is_coming || (rollout.is_none() && progress.serving.is_empty()) {
        return Ok(None);
    }
    let has_components = record.serving.has_components();
    let mut variants = Vec::new();
    let mut shadow = None;
    for (group, revision) in revisions(progress) {
        let Some((deployed, variant)) = described(record, progress, &group, revision) else { continue };
        let units = progress.units.iter().filter(|unit| unit.group == group && unit.revision == revision);
        let instances = units.filter_map(|unit| Some((unit, reached(None, unit)?)));
        let instances: Vec<_> = if has_components { Vec::new() } else { instances.collect() };
        let is_shadow = deployed.shadow_variants.iter().any(|one| one.config.variant_name == group);
        let weight = if is_shadow { variant.desired_weight } else { weight(record, progress, &group, revision) };
        let in_force = in_force(record, progress, &group, variant);
        let managed = ManagedVariant {
            name: group.parse()?,
            revision,
            weight: TrafficWeight::new(weight).unwrap_or_default(),
            routing: routing::of_variant(in_force),
            health: health(instances.iter().map(|(_, reached)| reached)),
            instances: routed(&instances, weight > 0.0, in_force.max_in_flight),
        };
        if !is_shadow {
            variants.push(managed);
        } else if is_in_force(progress, &group, revision) {
            shadow = Some(managed);
        }
    }
    let components = has_components.then(|| components(record, hosted, &reached)).transpose()?;
    let (name, async_output) = (fleet_name(record, own_account), async_output(record));
    Ok(Some(ManagedEndpoint { name, variants, shadow, components, async_output }))
}

/// Where answers of asynchronous invocations go, where the endpoint's configuration says so.
fn async_output(record: &EndpointRecord) -> Option<AsyncOutput> {
    let output = record.serving.settings.async_inference_config.as_ref()?.get("OutputConfig")?;
    let path = |name: &str| output.get(name).and_then(|path| path.as_str()).map(str::to_owned);
    Some(AsyncOutput { answers: path("S3OutputPath")?, failures: path("S3FailurePath") })
}

/// Every group and revision that is, or is to be, in the order of the variants; of two revisions the older first.
fn revisions(progress: &Progress) -> Vec<(String, u64)> {
    let serving = progress.serving.iter().map(|(name, side)| (name.clone(), side.revision));
    let groups = progress.rollout.iter().flat_map(|rollout| &rollout.groups);
    let coming = groups.filter_map(|group| Some((group.name.clone(), group.new?.revision)));
    let there = progress.units.iter().map(|unit| (unit.group.clone(), unit.revision));
    let mut all: Vec<_> = serving.chain(coming).chain(there).collect();
    all.sort();
    all.dedup();
    all
}

/// Whether a revision of a group is the one that serves: the old one until all traffic has moved.
fn is_in_force(progress: &Progress, group: &str, revision: u64) -> bool {
    let change = progress.rollout.iter().find_map(|rollout| {
        let group = rollout.groups.iter().find(|change| change.name == group)?;
        Some(if rollout.share >= 1.0 { group.new } else { group.old })
    });
    let side = change.unwrap_or_else(|| progress.serving.get(group).copied());
    side.is_some_and(|side| side.revision == revision)
}

/// The configuration and the variant that a revision of a group was made from.
fn described<'r>(
    record: &'r EndpointRecord,
    progress: &Progress,
    group: &str,
    revision: u64,
) -> Option<(&'r Deployed, &'r VariantRecord)> {
    let unit = Unit { group: group.to_owned(), revision, ordinal: 0, host: None, phase: Phase::Wanted, url: None };
    let in_deployed = |deployed: &'r Deployed| {
        Some((deployed, deployed.all_variants().find(|variant| variant.config.variant_name == group)?))
    };
    in_deployed(super::orders::side(record, progress, &unit)).or_else(|| in_deployed(&record.serving))
}

/// What stays in place is routed as before until all traffic has moved; then as the new configuration says.
fn in_force<'r>(
    record: &'r EndpointRecord,
    progress: &Progress,
    group: &str,
    variant: &'r VariantRecord,
) -> &'r VariantRecord {
    let moved = progress.rollout.as_ref().filter(|rollout| rollout.share >= 1.0);
    let in_place = moved.and_then(|rollout| rollout.groups.iter().find(|it| it.name == group && it.is_in_place()));
    let target = in_place.and(super::orders::coming(record, progress));
    let new = target.and_then(|target| target.all_variants().find(|it| it.config.variant_name == group));
    new.unwrap_or(variant)
}

/// The instances that may take requests. Where all of them go because traffic has moved away, those that wait there for
/// room are to be served there: they are not told to drain.
fn routed(units: &[(&Unit, Reached)], gets_traffic: bool, max_in_flight: Option<NonZeroU32>) -> Vec<ManagedInstance> {
    let others_stay = units.iter().any(|(unit, _)| unit.serves());
    let takes_requests = |unit: &Unit| matches!(unit.phase, Phase::InService | Phase::Draining { .. });
    let instance = |(unit, reached): &(&Unit, Reached)| ManagedInstance {
        host: unit.host.as_deref().map(Into::into),
        api_key: reached.api_key.clone(),
        max_in_flight,
        draining: unit.leaves() && (others_stay || gets_traffic),
        ..ManagedInstance::new(unit.id().as_str(), reached.url.clone())
    };
    units.iter().filter(|(unit, _)| takes_requests(unit)).map(instance).collect()
}

fn components<'a>(
    endpoint: &EndpointRecord,
    hosted: &[Hosted<'a>],
    reached: &impl Fn(Option<&'a InferenceComponentRecord>, &Unit) -> Option<Reached>,
) -> Result<Vec<ManagedComponent>, NameError> {
    let mut managed = Vec::new();
    for one in hosted {
        let Some(production_variant) = &one.record.variant_name else { continue };
        let kind = match one.record.base() {
            None => base(endpoint, one, production_variant, reached),
            Some(base) => {
                let base = hosted.iter().find(|other| other.record.identity.name.eq_ignore_ascii_case(base));
                let Some(base) = base.filter(|base| base.record.base().is_none()) else { continue };
                let copies = one.loaded_on.iter().map(|id| id.as_str().into()).collect();
                ComponentKind::Adapter { base: base.record.identity.name.parse()?, copies }
            }
        };
        let name: Name = one.record.identity.name.parse()?;
        managed.push(ManagedComponent { name, production_variant: production_variant.parse()?, kind });
    }
    Ok(managed)
}

fn base<'a>(
    endpoint: &EndpointRecord,
    one: &Hosted<'a>,
    production_variant: &str,
    reached: &impl Fn(Option<&'a InferenceComponentRecord>, &Unit) -> Option<Reached>,
) -> ComponentKind {
    let copies = one.progress.units.iter().filter_map(|unit| Some((unit, reached(Some(one.record), unit)?)));
    let copies: Vec<_> = copies.collect();
    let variant = endpoint.serving.variants.iter().find(|it| it.config.variant_name == *production_variant);
    let moved = one.progress.rollout.as_ref().is_some_and(|rollout| rollout.share >= 1.0);
    let plan = match &one.record.transition {
        Some(ComponentTransition::Update { target, .. }) if moved => target,
        _ => &one.record.serving,
    };
    ComponentKind::Base {
        routing: variant.map_or_else(Routing::default, |variant| routing::of_component(plan, variant)),
        health: health(copies.iter().map(|(_, reached)| reached)),
        copies: routed(&copies, true, plan.max_in_flight.or_else(|| variant?.max_in_flight)),
    }
}

fn health<'a>(mut reached: impl Iterator<Item = &'a Reached>) -> Health {
    Health { path: reached.find_map(|reached| reached.health.clone()), ..Health::default() }
}
