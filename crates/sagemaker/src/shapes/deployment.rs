//! How an endpoint changes from one configuration to the next.

use serde::{Deserialize, Serialize};

/// Blue/green or rolling, and what rolls it back. Neither is blue/green, all at once.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeploymentConfig {
    /// A new fleet beside the old one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blue_green_update_policy: Option<BlueGreenUpdate>,
    /// Batch by batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_update_policy: Option<RollingUpdate>,
    /// Alarms that roll back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_rollback_configuration: Option<AutoRollback>,
}

/// A new fleet beside the old one, to which traffic moves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct BlueGreenUpdate {
    /// How traffic moves.
    pub traffic_routing_configuration: TrafficRouting,
    /// How long the old fleet stays after all traffic moved, 0 to 3,600 s; 0 if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_wait_in_seconds: Option<u32>,
    /// How long the whole may take, 600 to 28,800 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_execution_timeout_in_seconds: Option<u32>,
}

/// How traffic moves from the old fleet to the new one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TrafficRouting {
    /// In one step, two, or equal ones.
    #[serde(rename = "Type")]
    pub kind: TrafficRoutingType,
    /// How long each step is watched, 0 to 3,600 s.
    pub wait_interval_in_seconds: u32,
    /// The first of two steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary_size: Option<CapacitySize>,
    /// Each of the equal steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linear_step_size: Option<CapacitySize>,
}

/// In how many steps traffic moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TrafficRoutingType {
    /// One.
    AllAtOnce,
    /// A small one, then the rest.
    Canary,
    /// Equal ones.
    Linear,
}

/// Batch by batch: new instances come, old ones go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct RollingUpdate {
    /// How large a batch is.
    pub maximum_batch_size: CapacitySize,
    /// How long each batch is watched, 0 to 3,600 s.
    pub wait_interval_in_seconds: u32,
    /// How long the whole may take, 600 to 28,800 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_execution_timeout_in_seconds: Option<u32>,
    /// How large a batch is on the way back; everything if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_maximum_batch_size: Option<CapacitySize>,
}

/// A number of instances or a share of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CapacitySize {
    /// What the value counts.
    #[serde(rename = "Type")]
    pub kind: CapacitySizeType,
    /// At least 1.
    pub value: u32,
}

/// What a capacity size counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CapacitySizeType {
    /// Instances.
    InstanceCount,
    /// Percent of them.
    CapacityPercent,
}

/// Alarms that roll a deployment back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AutoRollback {
    /// Up to ten; any of them rolls back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<Alarm>,
}

/// An alarm of CloudWatch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Alarm {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alarm_name: Option<String>,
}
