//! Endpoint configurations: which variants go together, and what each needs.

use std::collections::HashSet;

use super::ensure;
use crate::error::ServiceError;
use crate::records::EndpointConfigRecord;
use crate::shapes::{
    EndpointConfigSettings, ManagedInstanceScaling, ProductionVariant, RoutingConfig, RoutingStrategy,
};

/// Checks an endpoint configuration.
pub(crate) fn check(config: &EndpointConfigRecord) -> Result<(), ServiceError> {
    let EndpointConfigRecord { variants, shadow_variants, settings, .. } = config;
    let all = || variants.iter().chain(shadow_variants);
    let mut names = HashSet::new();
    for ProductionVariant { variant_name, .. } in all() {
        ensure(names.insert(variant_name.to_ascii_lowercase()), || {
            format!("The variant name \"{variant_name}\" was non-unique within the request.")
        })?;
    }
    let hosts_components = variants.iter().all(|variant| variant.model_name.is_none());
    if hosts_components {
        ensure(settings.execution_role_arn.is_some(), || {
            String::from(
                "ExecutionRoleArn is required for inference component endpoints. To host a model without inference \
                 components, give each of ProductionVariants a ModelName.",
            )
        })?;
    } else {
        let nameless = variants.iter().find(|variant| variant.model_name.is_none());
        ensure(nameless.is_none(), || {
            String::from("Either all of ProductionVariants have a ModelName, or none of them.")
        })?;
    }
    shadows(config, hosts_components)?;
    all().try_for_each(|variant| variant_alone(variant, settings))
}

fn shadows(config: &EndpointConfigRecord, hosts_components: bool) -> Result<(), ServiceError> {
    let EndpointConfigRecord { variants, shadow_variants, .. } = config;
    if shadow_variants.is_empty() {
        return Ok(());
    }
    ensure(shadow_variants.len() == 1 && variants.len() == 1, || {
        String::from("A shadow test needs exactly one of ProductionVariants and one of ShadowProductionVariants.")
    })?;
    let serverless = variants.iter().chain(shadow_variants).any(|variant| variant.serverless_config.is_some());
    ensure(
        !hosts_components && !serverless && shadow_variants.iter().all(|variant| variant.model_name.is_some()),
        || String::from("ShadowProductionVariants are supported only with models on instances."),
    )
}

fn variant_alone(variant: &ProductionVariant, settings: &EndpointConfigSettings) -> Result<(), ServiceError> {
    let name = &variant.variant_name;
    let kinds =
        [variant.instance_type.is_some(), variant.instance_pools.is_some(), variant.serverless_config.is_some()];
    ensure(kinds.into_iter().filter(|given| *given).count() == 1, || {
        format!("The variant \"{name}\" needs exactly one of InstanceType, InstancePools and ServerlessConfig.")
    })?;
    if let Some(scaling) = &variant.managed_instance_scaling {
        managed_scaling(variant, scaling)?;
    }
    if variant.serverless_config.is_some() {
        serverless(variant, settings)?;
    } else {
        let managed = variant.managed_scaling().is_some_and(|scaling| scaling.min_instance_count.is_some());
        ensure(variant.initial_instance_count.is_some() || managed, || {
            format!("The variant \"{name}\" needs InitialInstanceCount.")
        })?;
    }
    pools(variant)?;
    variant.routing_config.as_ref().map_or(Ok(()), |routing| routing_config(name, routing))
}

fn managed_scaling(variant: &ProductionVariant, scaling: &ManagedInstanceScaling) -> Result<(), ServiceError> {
    ensure(variant.serverless_config.is_none(), || {
        String::from("ManagedInstanceScaling is not supported with the given EndpointConfig setup.")
    })?;
    ensure(variant.model_name.is_none(), || {
        String::from("ManagedInstanceScaling is only supported for inference component endpoints.")
    })?;
    let name = &variant.variant_name;
    let least = scaling.min_instance_count.unwrap_or(0);
    let most = scaling.max_instance_count.unwrap_or(u32::MAX);
    ensure(least <= most, || {
        format!("MinInstanceCount {least} of the variant \"{name}\" is greater than its MaxInstanceCount {most}.")
    })?;
    let initial = variant.initial_instance_count.filter(|_| variant.managed_scaling().is_some());
    ensure(initial.is_none_or(|initial| (least..=most).contains(&initial)), || {
        format!(
            "InitialInstanceCount of the variant \"{name}\" is not between its MinInstanceCount and MaxInstanceCount."
        )
    })
}

fn serverless(variant: &ProductionVariant, settings: &EndpointConfigSettings) -> Result<(), ServiceError> {
    let name = &variant.variant_name;
    let instances = [
        variant.initial_instance_count.is_some(),
        variant.volume_size_in_gb.is_some(),
        variant.routing_config.is_some(),
        variant.accelerator_type.is_some(),
        variant.capacity_reservation_config.is_some(),
        variant.inference_ami_version.is_some(),
        settings.async_inference_config.is_some(),
    ];
    ensure(!instances.contains(&true), || {
        format!(
            "The variant \"{name}\" is serverless: InitialInstanceCount, VolumeSizeInGB, RoutingConfig, \
             AcceleratorType, CapacityReservationConfig, InferenceAmiVersion and AsyncInferenceConfig are for variants \
             on instances."
        )
    })?;
    ensure(variant.model_name.is_some(), || format!("The serverless variant \"{name}\" needs a ModelName."))?;
    let Some(config) = &variant.serverless_config else { return Ok(()) };
    ensure(config.memory_size_in_mb.is_multiple_of(1_024), || {
        format!("MemorySizeInMB must be a multiple of 1024, not {}.", config.memory_size_in_mb)
    })?;
    ensure(config.provisioned_concurrency.unwrap_or(0) <= config.max_concurrency, || {
        String::from("ProvisionedConcurrency must not be greater than MaxConcurrency.")
    })
}

fn pools(variant: &ProductionVariant) -> Result<(), ServiceError> {
    let mut types = HashSet::new();
    for pool in variant.instance_pools.iter().flatten() {
        let kind = &pool.instance_type;
        ensure(types.insert(kind), || format!("The instance type \"{kind}\" was non-unique within InstancePools."))?;
        ensure(variant.model_name.is_some() || pool.model_name_override.is_none(), || {
            String::from("ModelNameOverride is only supported for variants with a ModelName.")
        })?;
    }
    ensure(variant.variant_instance_provision_timeout_in_seconds.is_none() || variant.instance_pools.is_some(), || {
        String::from("VariantInstanceProvisionTimeoutInSeconds is only supported with InstancePools.")
    })
}

/// The parameters of `PREFIX_AWARE` are not required by their shape, yet the strategy needs both.
fn routing_config(variant: &str, routing: &RoutingConfig) -> Result<(), ServiceError> {
    let parameters = routing.prefix_aware_routing_config;
    if routing.routing_strategy != RoutingStrategy::PrefixAware {
        return ensure(parameters.is_none(), || {
            format!(
                "PrefixAwareRoutingConfig of the variant \"{variant}\" is only supported with the routing strategy PREFIX_AWARE."
            )
        });
    }
    let complete = parameters
        .is_some_and(|parameters| parameters.prefix_length.is_some() && parameters.concurrency_threshold.is_some());
    ensure(complete, || {
        format!(
            "PrefixAwareRoutingConfig with PrefixLength and ConcurrencyThreshold is required for the variant \
             \"{variant}\" because its routing strategy is PREFIX_AWARE."
        )
    })
}

#[cfg(test)]
#[path = "variants_tests.rs"]
mod tests;
