//! How much may run for an account: every instance and every copy is a program, or a thread of the router's.

use isotherm_store::{Records, Transaction};
use serde_json::Value;

use super::Call;
use crate::error::ServiceError;
use crate::records::{ENDPOINTS, INFERENCE_COMPONENTS};

/// The most instances and copies of an account, over all of its endpoints.
const MOST: u64 = 500;

/// Makes a change that may start instances or copies, unless it asks for more of them than there may be.
///
/// # Errors
///
/// Those of the change, and [`ServiceError::LimitExceeded`].
pub(super) fn write(
    call: &Call<'_>,
    change: impl FnOnce(&Transaction) -> Result<Value, ServiceError>,
) -> Result<Value, ServiceError> {
    call.store.write(|transaction| {
        let before = asked_for(call, transaction)?;
        let answer = change(transaction)?;
        let after = asked_for(call, transaction)?;
        if after <= before.max(MOST) {
            return Ok(answer);
        }
        Err(ServiceError::LimitExceeded(format!(
            "The account-level service limit 'Instances and inference component copies across endpoints' is {MOST}, with \
             current utilization of {before} and a request delta of {}.",
            after - before
        )))
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
