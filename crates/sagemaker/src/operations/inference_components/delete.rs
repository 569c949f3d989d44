//! DeleteInferenceComponent.

use serde_json::Value;

use super::NamedComponent;
use crate::error::ServiceError;
use crate::operations::{Call, invalid, typed};
use crate::records::{ComponentTransition, INFERENCE_COMPONENTS};
use crate::shapes::InferenceComponentStatus;

/// A component can be deleted whatever is under way with it; asking again while it goes changes nothing.
pub(super) fn delete(call: &Call<'_>, input: Value) -> Result<Value, ServiceError> {
    let NamedComponent { inference_component_name } = typed(input)?;
    call.store.write(|transaction| {
        let mut component = call.inference_component(transaction, &inference_component_name)?;
        if component.status == InferenceComponentStatus::Deleting {
            return Ok(Value::Null);
        }
        let others = call.components_of(transaction, &component.endpoint_name)?;
        let is_its_base =
            |base: Option<&str>| base.is_some_and(|base| base.eq_ignore_ascii_case(&component.identity.name));
        if let Some(adapter) = others.iter().find(|other| is_its_base(other.base())) {
            return Err(invalid(format!(
                "Cannot delete inference component \"{}\" because it is the base of \"{}\". Please delete that one and \
                 try it again.",
                component.identity.arn, adapter.identity.arn
            )));
        }
        component.status = InferenceComponentStatus::Deleting;
        component.modified_at = call.now;
        component.transition = Some(ComponentTransition::Delete { started_at: call.now });
        transaction.put(&INFERENCE_COMPONENTS, &component.key(), &component)?;
        Ok(Value::Null)
    })
}
