//! What a provider is told of an instance or a copy.

use std::time::Duration;

use super::progress::{Progress, Stage, Unit};
use crate::providers::{InstanceOrder, Providers, named_model};
use crate::records::{
    ComponentPlan, ComponentTransition, Deployed, EndpointRecord, InferenceComponentRecord, VariantRecord,
};
use crate::shapes::{ComponentSpecification, ContainerDefinition, Environment, InstancePool};

/// The kind of instance where none is named: serverless variants.
const ANY_TYPE: &str = "serverless";

/// The key by which providers know a unit of an endpoint.
pub(super) fn instance_key(endpoint: &EndpointRecord, unit: &Unit) -> String {
    let identity = &endpoint.identity;
    format!("{}.{}.{}.r{}", identity.account, identity.name.to_ascii_lowercase(), unit.id(), unit.revision)
}

/// The key by which providers know a copy of a component.
pub(super) fn copy_key(component: &InferenceComponentRecord, unit: &Unit) -> String {
    let (account, endpoint) = (&component.identity.account, component.endpoint_name.to_ascii_lowercase());
    // A variant may have the component's name.
    format!("{account}.{endpoint}.ic.{}.r{}", unit.id(), unit.revision)
}

/// What runs on a unit of an endpoint; `None` where that is only a place for copies, or nothing that the records know.
pub(super) fn instance_order(
    endpoint: &EndpointRecord,
    progress: &Progress,
    unit: &Unit,
    providers: &Providers,
) -> Option<InstanceOrder> {
    let deployed = side(endpoint, progress, unit);
    let variant = deployed.all_variants().find(|variant| variant.config.variant_name == unit.group)?;
    let (instance_type, model_name) = kind(deployed, variant, providers);
    let model = deployed.model(model_name?)?;
    let container = model.settings.container();
    let config = &variant.config;
    let timeouts =
        [config.model_data_download_timeout_in_seconds, config.container_startup_health_check_timeout_in_seconds];
    Some(InstanceOrder {
        key: instance_key(endpoint, unit),
        endpoint: endpoint.identity.name.clone(),
        variant: config.variant_name.clone(),
        instance: unit.id(),
        instance_type,
        image: container.and_then(|container| container.image.clone()),
        model: container.and_then(|it| served(&it.environment)).or_else(|| Some(model.identity.name.clone())),
        model_data: container.and_then(model_data),
        environment: container.map(|container| container.environment.clone()).unwrap_or_default(),
        start_timeout: sum(timeouts),
        previous: previous(unit),
    })
}

/// What runs in a copy that lies on an instance of this kind.
pub(super) fn copy_order(
    component: &InferenceComponentRecord,
    progress: &Progress,
    unit: &Unit,
    instance_type: &str,
) -> Option<InstanceOrder> {
    let plan = plan_of(component, progress, unit);
    let specification = specification(plan, instance_type)?;
    let model = specification.model_name.as_ref().and_then(|name| plan.model(name));
    let of_model = model.and_then(|model| model.settings.container());
    let own = specification.container.as_ref();
    let mut environment = of_model.map(|container| container.environment.clone()).unwrap_or_default();
    environment.extend(own.map(|own| own.environment.clone()).unwrap_or_default());
    let startup = specification.startup_parameters.as_ref();
    let timeouts = [
        startup.and_then(|startup| startup.model_data_download_timeout_in_seconds),
        startup.and_then(|startup| startup.container_startup_health_check_timeout_in_seconds),
    ];
    let name = model.map_or(&component.identity.name, |model| &model.identity.name);
    Some(InstanceOrder {
        key: copy_key(component, unit),
        endpoint: component.endpoint_name.clone(),
        variant: component.variant_name.clone().unwrap_or_default(),
        instance: unit.id(),
        instance_type: instance_type.to_owned(),
        image: own.and_then(|own| own.image.clone()).or_else(|| of_model.and_then(|it| it.image.clone())),
        model: served(&environment).or_else(|| Some(name.clone())),
        model_data: own.and_then(|own| own.artifact_url.clone()).or_else(|| of_model.and_then(model_data)),
        environment,
        start_timeout: sum(timeouts),
        previous: previous(unit),
    })
}

/// The configuration that a unit of an endpoint belongs to: the one that comes, if an update made the unit.
pub(super) fn side<'r>(endpoint: &'r EndpointRecord, progress: &Progress, unit: &Unit) -> &'r Deployed {
    let left_over = endpoint.left_over.as_ref().filter(|left| left.revision == unit.revision);
    match (endpoint.update(), left_over) {
        (_, Some(left)) => &left.target,
        (Some(update), None) if is_new(progress, unit) => &update.target,
        _ => &endpoint.serving,
    }
}

/// The configuration that a change brings, or has left half done.
pub(super) fn coming<'r>(endpoint: &'r EndpointRecord, progress: &Progress) -> Option<&'r Deployed> {
    let is_stuck = progress.rollout.as_ref().is_some_and(|rollout| rollout.stage == Stage::Stuck);
    let left_over = endpoint.left_over.as_ref().filter(|_| is_stuck).map(|left| &left.target);
    endpoint.update().map(|update| &update.target).or(left_over)
}

/// What a copy runs: what comes, if an update made the copy.
pub(super) fn plan_of<'r>(
    component: &'r InferenceComponentRecord,
    progress: &Progress,
    unit: &Unit,
) -> &'r ComponentPlan {
    let left_over = component.left_over.as_ref().filter(|left| left.revision == unit.revision);
    match (&component.transition, left_over) {
        (_, Some(left)) => &left.target,
        (Some(ComponentTransition::Update { target, .. }), None) if is_new(progress, unit) => target,
        _ => &component.serving,
    }
}

fn is_new(progress: &Progress, unit: &Unit) -> bool {
    let groups = progress.rollout.iter().flat_map(|rollout| &rollout.groups);
    let mut news = groups.filter(|group| group.name == unit.group && !group.is_in_place());
    news.any(|group| group.new.is_some_and(|new| new.revision == unit.revision))
}

/// The specification for instances of a kind, else the one for all.
pub(super) fn specification<'p>(plan: &'p ComponentPlan, instance_type: &str) -> Option<&'p ComponentSpecification> {
    let for_it = plan.specifications.iter().find(|one| one.instance_type.as_deref() == Some(instance_type));
    for_it.or_else(|| plan.specifications.iter().find(|one| one.instance_type.is_none()))
}

/// The kind of a variant's instances: of several pools the first, by priority, that a provider delivers.
pub(super) fn instance_type(deployed: &Deployed, variant: &VariantRecord, providers: &Providers) -> String {
    kind(deployed, variant, providers).0
}

fn kind<'r>(deployed: &'r Deployed, variant: &'r VariantRecord, providers: &Providers) -> (String, Option<&'r str>) {
    let config = &variant.config;
    let mut pools: Vec<&InstancePool> = config.instance_pools.iter().flatten().collect();
    pools.sort_by_key(|pool| pool.priority);
    let model = |pool: &'r InstancePool| pool.model_name_override.as_deref().or(config.model_name.as_deref());
    let image = |name: Option<&str>| deployed.model(name?)?.settings.container()?.image.clone();
    let delivers = |pool: &'r InstancePool| providers.find(&pool.instance_type, image(model(pool)).as_deref()).is_ok();
    match pools.iter().copied().find(|&pool| delivers(pool)).or(pools.first().copied()) {
        Some(pool) => (pool.instance_type.clone(), model(pool)),
        None => {
            let kind = config.instance_type.clone().unwrap_or_else(|| ANY_TYPE.to_owned());
            (kind, config.model_name.as_deref())
        }
    }
}

fn served(environment: &Environment) -> Option<String> {
    named_model(environment).map(|(_, model)| model.to_owned())
}

fn model_data(container: &ContainerDefinition) -> Option<String> {
    let source = container.model_data_source.as_ref();
    let in_source = || source?.pointer("/S3DataSource/S3Uri")?.as_str().map(str::to_owned);
    container.model_data_url.clone().or_else(in_source)
}

fn sum(timeouts: [Option<u32>; 2]) -> Option<Duration> {
    let given: Vec<_> = timeouts.into_iter().flatten().map(u64::from).collect();
    (!given.is_empty()).then(|| Duration::from_secs(given.into_iter().sum()))
}

fn previous(unit: &Unit) -> Option<isotherm_config::InstanceUrl> {
    unit.url.as_ref()?.parse().ok()
}
