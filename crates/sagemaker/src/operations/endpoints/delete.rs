//! DeleteEndpoint.

use serde_json::Value;

use super::NamedEndpoint;
use crate::error::ServiceError;
use crate::operations::{Call, invalid, typed};
use crate::records::{ENDPOINTS, Transition};
use crate::shapes::EndpointStatus;

/// An endpoint can be deleted whatever is under way with it; asking again while it goes changes nothing.
pub(super) fn delete(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let NamedEndpoint { endpoint_name } = typed(input)?;
    call.store.write(|transaction| {
        let mut endpoint = call.endpoint(transaction, &endpoint_name)?;
        if endpoint.status == EndpointStatus::Deleting {
            return Ok(Value::Null);
        }
        if !call.components_of(transaction, &endpoint_name)?.is_empty() {
            return Err(invalid(
                "Cannot delete endpoint with inference component associated. Please delete inference component and \
                 try it again.",
            ));
        }
        endpoint.status = EndpointStatus::Deleting;
        endpoint.modified_at = call.now;
        endpoint.transition = Some(Transition::Delete { started_at: call.now });
        transaction.put(&ENDPOINTS, &endpoint.key(), &endpoint)?;
        Ok(Value::Null)
    })
}
