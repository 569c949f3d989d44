//! A component's specifications with the models that they name, as they go into its record.

use isotherm_store::Records;

use crate::error::ServiceError;
use crate::operations::Call;
use crate::records::{ComponentPlan, ModelRecord};
use crate::routing;
use crate::shapes::{ComponentSpecification, Environment};

/// What a component of these specifications runs.
///
/// # Errors
///
/// A model is not there, or a container's environment asks for what there is not.
pub(super) fn plan(
    call: &Call<'_>,
    records: &impl Records,
    specifications: Vec<ComponentSpecification>,
    given_as_list: bool,
) -> Result<ComponentPlan, ServiceError> {
    let mut models: Vec<ModelRecord> = Vec::new();
    for name in specifications.iter().filter_map(|specification| specification.model_name.as_deref()) {
        if !models.iter().any(|model| model.identity.name.eq_ignore_ascii_case(name)) {
            models.push(call.model(records, name)?);
        }
    }
    let strategies = environments(&specifications, &models).map(routing::asked_by_environment);
    let strategy = strategies.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().next();
    let bounds = environments(&specifications, &models).map(routing::bound_by_environment);
    let max_in_flight = bounds.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().next();
    Ok(ComponentPlan { specifications, given_as_list, models, strategy, max_in_flight })
}

/// Those of the components' own containers come before those of models.
fn environments<'a>(
    specifications: &'a [ComponentSpecification],
    models: &'a [ModelRecord],
) -> impl Iterator<Item = &'a Environment> {
    let own = specifications.iter().filter_map(|specification| Some(&specification.container.as_ref()?.environment));
    own.chain(models.iter().filter_map(|model| Some(&model.settings.container()?.environment)))
}
