//! Inference components: models hosted on an endpoint's instances.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{AutoRollback, Echoed, Environment};

/// What an inference component runs and needs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ComponentSpecification {
    /// The kind of instance that this specification is for, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// A model that was created before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// A container, or what differs from the model's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<ComponentContainer>,
    /// How long it may take to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup_parameters: Option<StartupParameters>,
    /// What a copy needs of its instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_resource_requirements: Option<ComponentCompute>,
    /// The component that this one is an adapter for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_inference_component_name: Option<String>,
    /// Whether instances keep the model's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_cache_config: Option<Echoed>,
    /// Where copies go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_config: Option<ComponentScheduling>,
}

/// The container of an inference component.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ComponentContainer {
    /// The image; providers may match it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Where the model, or the adapter, lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_url: Option<String>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: Environment,
    /// Where the container's metrics are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_metrics_config: Option<Echoed>,
}

/// How long a component's container may take to start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StartupParameters {
    /// To fetch the model, 60 to 3,600 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_data_download_timeout_in_seconds: Option<u32>,
    /// To be healthy, 60 to 3,600 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_startup_health_check_timeout_in_seconds: Option<u32>,
}

/// What a copy needs of its instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ComponentCompute {
    /// At least 0.25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_cpu_cores_required: Option<f64>,
    /// At least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_accelerator_devices_required: Option<f64>,
    /// At least 128.
    pub min_memory_required_in_mb: u32,
    /// At least 128.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory_required_in_mb: Option<u32>,
    /// A part of a split accelerator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator_partition_type: Option<String>,
}

/// Where copies go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ComponentScheduling {
    /// Apart or together.
    pub placement_strategy: PlacementStrategy,
    /// How evenly over availability zones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone_balance: Option<Echoed>,
}

/// Where copies go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PlacementStrategy {
    /// To as many instances as possible.
    Spread,
    /// To as few as possible.
    Binpack,
}

/// How many copies of a component there should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ComponentRuntimeConfig {
    /// At least 0.
    pub copy_count: u32,
}

/// How many copies lie on instances of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct PlacementStatus {
    /// The kind of instance.
    pub instance_type: String,
    /// Copies on them.
    pub current_copy_count: u32,
}

/// How a component changes from one specification to the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ComponentDeploymentConfig {
    /// Batch by batch.
    pub rolling_update_policy: ComponentRollingUpdate,
    /// Alarms that roll back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_rollback_configuration: Option<AutoRollback>,
}

/// Batch by batch: new copies come, old ones go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ComponentRollingUpdate {
    /// How large a batch is.
    pub maximum_batch_size: ComponentCapacitySize,
    /// How long each batch is watched, 0 to 3,600 s.
    pub wait_interval_in_seconds: u32,
    /// How long the whole may take, 600 to 28,800 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_execution_timeout_in_seconds: Option<u32>,
    /// How large a batch is on the way back; everything if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_maximum_batch_size: Option<ComponentCapacitySize>,
}

/// A number of copies or a share of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ComponentCapacitySize {
    /// What the value counts.
    #[serde(rename = "Type")]
    pub kind: ComponentCapacitySizeType,
    /// At least 1.
    pub value: u32,
}

/// What a component's capacity size counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ComponentCapacitySizeType {
    /// Copies.
    CopyCount,
    /// Percent of them.
    CapacityPercent,
}
