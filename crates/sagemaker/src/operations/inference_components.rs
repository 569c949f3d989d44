//! Create, describe, update, scale, list and delete inference components.

mod create;
mod delete;
mod describe;
mod list;
mod plan;
mod update;

use serde::Deserialize;

use super::{Effect, Operation};
use crate::error::ServiceError;
use crate::records::{ComponentTransition, InferenceComponentRecord};
use crate::shapes::InferenceComponentStatus;

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        name: "CreateInferenceComponent",
        input: "CreateInferenceComponentInput",
        effect: Effect::Deployment,
        run: create::create,
    },
    Operation {
        name: "DescribeInferenceComponent",
        input: "DescribeInferenceComponentInput",
        effect: Effect::None,
        run: describe::describe,
    },
    Operation {
        name: "UpdateInferenceComponent",
        input: "UpdateInferenceComponentInput",
        effect: Effect::Deployment,
        run: update::update,
    },
    Operation {
        name: "UpdateInferenceComponentRuntimeConfig",
        input: "UpdateInferenceComponentRuntimeConfigInput",
        effect: Effect::Deployment,
        run: update::update_runtime_config,
    },
    Operation {
        name: "ListInferenceComponents",
        input: "ListInferenceComponentsInput",
        effect: Effect::None,
        run: list::list,
    },
    Operation {
        name: "DeleteInferenceComponent",
        input: "DeleteInferenceComponentInput",
        effect: Effect::Deployment,
        run: delete::delete,
    },
];

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NamedComponent {
    inference_component_name: String,
}

/// Refuses a change of a component that is changing already.
fn ready_for_change(component: &InferenceComponentRecord) -> Result<(), ServiceError> {
    let state = match (&component.transition, component.status) {
        (Some(ComponentTransition::Create { .. }), _) => "CREATE_IN_PROGRESS",
        (Some(ComponentTransition::Update { .. }), _) => "UPDATE_IN_PROGRESS",
        (Some(ComponentTransition::Scale { .. }), _) => "UPDATE_RC_IN_PROGRESS",
        (Some(ComponentTransition::Delete { .. }), _) => "DELETE_IN_PROGRESS",
        (None, InferenceComponentStatus::InService | InferenceComponentStatus::Failed) => return Ok(()),
        (None, InferenceComponentStatus::Creating) => "CREATE_IN_PROGRESS",
        (None, InferenceComponentStatus::Updating) => "UPDATE_IN_PROGRESS",
        (None, InferenceComponentStatus::Deleting) => "DELETE_IN_PROGRESS",
    };
    let arn = &component.identity.arn;
    Err(super::invalid(format!("Cannot update inference component \"{arn}\" while it is in state {state}")))
}
