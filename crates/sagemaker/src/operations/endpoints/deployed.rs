//! An endpoint configuration with everything that its variants need, as it goes into an endpoint's record.

use std::num::NonZeroU32;

use isotherm_core::StrategyName;
use isotherm_store::Records;

use crate::arn::ResourceKind;
use crate::error::ServiceError;
use crate::operations::Call;
use crate::records::{Deployed, EndpointConfigRecord, ModelRecord, TAGS, VariantRecord, tags_key};
use crate::routing::{self, Keying};
use crate::shapes::{DeployedImage, ProductionVariant, Timestamp};

/// The configuration of this name, ready to be brought onto instances: nothing of it is in service yet.
///
/// # Errors
///
/// The configuration or one of its models is not there.
pub(super) fn deployed(call: &Call<'_>, records: &impl Records, name: &str) -> Result<Deployed, ServiceError> {
    let EndpointConfigRecord { identity, settings, variants, shadow_variants } = call.endpoint_config(records, name)?;
    let tags =
        records.get(&TAGS, &tags_key(&identity.account, ResourceKind::EndpointConfig.in_arn(), &identity.name))?;
    let tags = tags.unwrap_or_default();
    let tagged = Tagged {
        strategy: routing::asked_by_tags(&tags)?,
        keying: Keying::asked_by_tags(&tags)?,
        max_in_flight: routing::bound_by_tags(&tags)?,
    };
    let mut models: Vec<ModelRecord> = Vec::new();
    for name in variants.iter().chain(&shadow_variants).flat_map(ProductionVariant::models) {
        if !models.iter().any(|model| model.identity.name.eq_ignore_ascii_case(name)) {
            models.push(call.model(records, name)?);
        }
    }
    let variant = |config: ProductionVariant| variant(config, &models, &tagged, call.now);
    let variants = variants.into_iter().map(variant).collect::<Result<Vec<_>, _>>()?;
    let shadow_variants = shadow_variants.into_iter().map(variant).collect::<Result<Vec<_>, _>>()?;
    Ok(Deployed { config_name: identity.name, settings, models, variants, shadow_variants })
}

/// What the tags of the configuration ask for, for all its variants.
struct Tagged {
    strategy: Option<StrategyName>,
    keying: Keying,
    max_in_flight: Option<NonZeroU32>,
}

fn variant(
    config: ProductionVariant,
    models: &[ModelRecord],
    tagged: &Tagged,
    now: Timestamp,
) -> Result<VariantRecord, ServiceError> {
    let model = models
        .iter()
        .find(|model| config.model_name.as_ref().is_some_and(|name| model.identity.name.eq_ignore_ascii_case(name)));
    let environment = model.and_then(|model| Some(&model.settings.container()?.environment));
    let strategy = environment.map(routing::asked_by_environment).transpose()?.flatten();
    let max_in_flight = environment.map(routing::bound_by_environment).transpose()?.flatten();
    let least = config.managed_scaling().and_then(|scaling| scaling.min_instance_count);
    // A serverless variant runs on one instance, which its descriptions do not mention.
    let instances = config.initial_instance_count.or(least).unwrap_or(1);
    Ok(VariantRecord {
        strategy: strategy.or(tagged.strategy),
        keying: tagged.keying,
        max_in_flight: max_in_flight.or(tagged.max_in_flight),
        desired_weight: config.initial_variant_weight.unwrap_or(1.0),
        current_weight: 0.0,
        desired_instance_count: instances,
        current_instance_count: 0,
        desired_serverless: config.serverless_config.clone(),
        current_serverless: None,
        status: Vec::new(),
        deployed_images: images(model, now),
        config,
    })
}

/// Images are taken as they are named: no registry is asked.
fn images(model: Option<&ModelRecord>, now: Timestamp) -> Vec<DeployedImage> {
    let Some(ModelRecord { settings, .. }) = model else { return Vec::new() };
    let containers = settings.primary_container.iter().chain(settings.containers.iter().flatten());
    let image = |image: &String| DeployedImage {
        specified_image: Some(image.clone()),
        resolved_image: Some(image.clone()),
        resolution_time: Some(now),
    };
    containers.filter_map(|container| container.image.as_ref()).map(image).collect()
}
