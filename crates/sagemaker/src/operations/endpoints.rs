//! Create, describe, update, scale, list and delete endpoints.

mod adjust;
mod create;
mod delete;
mod deployed;
mod describe;
mod list;
mod update;

use serde::Deserialize;

pub(super) use self::describe::{Members, shortened};
use super::{Effect, Operation};
use crate::error::ServiceError;
use crate::records::EndpointRecord;
use crate::shapes::EndpointStatus;

pub(super) const OPERATIONS: &[Operation] = &[
    Operation { name: "CreateEndpoint", input: "CreateEndpointInput", effect: Effect::Deployment, run: create::create },
    Operation {
        name: "DescribeEndpoint",
        input: "DescribeEndpointInput",
        effect: Effect::None,
        run: describe::describe,
    },
    Operation { name: "UpdateEndpoint", input: "UpdateEndpointInput", effect: Effect::Deployment, run: update::update },
    Operation {
        name: "UpdateEndpointWeightsAndCapacities",
        input: "UpdateEndpointWeightsAndCapacitiesInput",
        effect: Effect::Deployment,
        run: adjust::adjust,
    },
    Operation { name: "ListEndpoints", input: "ListEndpointsInput", effect: Effect::None, run: list::list },
    Operation { name: "DeleteEndpoint", input: "DeleteEndpointInput", effect: Effect::Deployment, run: delete::delete },
];

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NamedEndpoint {
    endpoint_name: String,
}

/// Refuses a change of an endpoint that is changing already, or that never can.
fn ready_for_change(endpoint: &EndpointRecord) -> Result<(), ServiceError> {
    let EndpointRecord { identity, status, .. } = endpoint;
    match status {
        EndpointStatus::InService | EndpointStatus::UpdateRollbackFailed if endpoint.transition.is_none() => Ok(()),
        EndpointStatus::Failed | EndpointStatus::OutOfService => Err(super::invalid(format!(
            "Cannot update endpoint \"{}\" because its status is {}. It can only be deleted.",
            identity.arn,
            status.as_str()
        ))),
        _ => Err(super::invalid(format!("Cannot update in-progress endpoint \"{}\".", identity.arn))),
    }
}
