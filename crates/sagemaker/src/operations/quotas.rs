//! How much an account may have: every resource lies on the disk, and every instance and every copy is a program, or a
//! thread of the router's.

use isotherm_store::{Records, Table, Transaction};

use super::Call;
use crate::error::ServiceError;
use crate::records::{ENDPOINT_CONFIGS, ENDPOINTS, INFERENCE_COMPONENTS, MODELS};

/// Makes room for one more of a kind of resource, unless there are as many as there may be.
///
/// # Errors
///
/// [`ServiceError::LimitExceeded`].
pub(super) fn one_more<T>(call: &Call<'_>, records: &impl Records, table: &Table<T>) -> Result<(), ServiceError> {
    let there = records.count(table, &call.account_prefix())?;
    let quota = Quota::of(table.name(), call);
    if there < quota.most { Ok(()) } else { Err(quota.exceeded(there, 1)) }
}

/// Makes a change that may start instances or copies, unless it asks for more of them than there may be.
///
/// # Errors
///
/// Those of the change, and [`ServiceError::LimitExceeded`].
pub(super) fn write<T>(
    call: &Call<'_>,
    change: impl FnOnce(&Transaction) -> Result<T, ServiceError>,
) -> Result<T, ServiceError> {
    let quota = Quota {
        what: "Number of instances and inference component copies across endpoints",
        most: call.quotas.instances.into(),
        unit: "Instances",
        setting: "instances",
    };
    call.store.write(|transaction| {
        let before = asked_for(call, transaction)?;
        let answer = change(transaction)?;
        let after = asked_for(call, transaction)?;
        if after <= before.max(quota.most) { Ok(answer) } else { Err(quota.exceeded(before, after - before)) }
    })
}

/// What shall run once every change has come to its end.
fn asked_for(call: &Call<'_>, records: &impl Records) -> Result<u64, ServiceError> {
    let endpoints = records.scan(&ENDPOINTS, &call.account_prefix())?;
    let instances = endpoints.iter().flat_map(|(_, endpoint)| {
        let deployed = endpoint.update().map_or(&endpoint.serving, |update| &update.target);
        deployed.all_variants().map(|variant| u64::from(variant.desired_instance_count))
    });
    let components = records.scan(&INFERENCE_COMPONENTS, &call.account_prefix())?;
    let copies = components.iter().map(|(_, component)| u64::from(component.desired_copy_count));
    Ok(instances.chain(copies).sum())
}

/// How much there may be of something.
struct Quota {
    /// As AWS calls its quotas.
    what: &'static str,
    most: u64,
    unit: &'static str,
    /// Where it is set, below `aws.quotas`.
    setting: &'static str,
}

impl Quota {
    /// That of the resources in a table.
    fn of(table: &str, call: &Call<'_>) -> Quota {
        let quotas = call.quotas;
        let (what, unit, most, setting) = if table == MODELS.name() {
            ("Number of models", "Models", quotas.models, "models")
        } else if table == ENDPOINT_CONFIGS.name() {
            (
                "Number of endpoint configurations",
                "Endpoint Configurations",
                quotas.endpoint_configs,
                "endpoint_configs",
            )
        } else if table == INFERENCE_COMPONENTS.name() {
            let (most, setting) = (quotas.inference_components, "inference_components");
            ("Number of inference components", "Inference Components", most, setting)
        } else {
            ("Number of endpoints", "Endpoints", quotas.endpoints, "endpoints")
        };
        Quota { what, most: most.into(), unit, setting }
    }

    fn exceeded(&self, there: u64, more: u64) -> ServiceError {
        let Quota { what, most, unit, setting } = self;
        ServiceError::LimitExceeded(format!(
            "The account-level service limit '{what}' is {most} {unit}, with current utilization of {there} {unit} and \
             a request delta of {more} {unit}. Please raise aws.quotas.{setting} in the router's configuration to \
             increase this limit."
        ))
    }
}
