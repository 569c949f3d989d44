//! Production variants: what runs, how much of it, and how requests find their instance.

use serde::{Deserialize, Serialize};

use super::Echoed;

/// A variant of an endpoint configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ProductionVariant {
    /// Unique in its configuration.
    pub variant_name: String,
    /// The model; none on an endpoint that holds inference components.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// How many instances to begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_instance_count: Option<u32>,
    /// The kind of instance; providers may match it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// Kinds of instances to try, instead of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_pools: Option<Vec<InstancePool>>,
    /// How long instances may take to come, 300 to 3,600 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant_instance_provision_timeout_in_seconds: Option<u32>,
    /// The share of traffic, among all variants' weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_variant_weight: Option<f64>,
    /// Elastic Inference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator_type: Option<String>,
    /// Where core dumps go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_dump_config: Option<Echoed>,
    /// Serverless instead of instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serverless_config: Option<Serverless>,
    /// The size of an instance's disk.
    #[serde(rename = "VolumeSizeInGB", skip_serializing_if = "Option::is_none")]
    pub volume_size_in_gb: Option<u32>,
    /// How long an instance may take to fetch the model, 60 to 3,600 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_data_download_timeout_in_seconds: Option<u32>,
    /// How long a container may take until it is healthy, 60 to 3,600 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_startup_health_check_timeout_in_seconds: Option<u32>,
    /// Whether people may log in to instances.
    #[serde(rename = "EnableSSMAccess", skip_serializing_if = "Option::is_none")]
    pub enable_ssm_access: Option<bool>,
    /// Bounds between which the number of instances follows the inference components.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_instance_scaling: Option<ManagedInstanceScaling>,
    /// How a request finds its instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing_config: Option<RoutingConfig>,
    /// The image of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inference_ami_version: Option<String>,
    /// Reserved capacity to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_reservation_config: Option<Echoed>,
    /// How accelerators are split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator_partition_layouts: Option<Echoed>,
}

impl ProductionVariant {
    /// The models that it names: its own, and those of single kinds of instances.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        let pools = self.instance_pools.iter().flatten();
        self.model_name.as_deref().into_iter().chain(pools.filter_map(|pool| pool.model_name_override.as_deref()))
    }

    /// The bounds for its number of instances, if that is managed.
    pub fn managed_scaling(&self) -> Option<&ManagedInstanceScaling> {
        self.managed_instance_scaling.as_ref().filter(|scaling| scaling.status == Some(ScalingStatus::Enabled))
    }
}

/// A kind of instance to try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct InstancePool {
    /// The kind.
    pub instance_type: String,
    /// Another model for this kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_name_override: Option<String>,
    /// 1 is tried first, 5 last.
    pub priority: u32,
}

/// Capacity of a serverless variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Serverless {
    /// 1,024 to 6,144.
    #[serde(rename = "MemorySizeInMB")]
    pub memory_size_in_mb: u32,
    /// Requests at once, 1 to 200.
    pub max_concurrency: u32,
    /// Kept warm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioned_concurrency: Option<u32>,
}

/// Bounds between which the number of instances follows the inference components.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ManagedInstanceScaling {
    /// Whether it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ScalingStatus>,
    /// At least so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_instance_count: Option<u32>,
    /// At most so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_instance_count: Option<u32>,
    /// How instances are given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_in_policy: Option<ScaleInPolicy>,
}

/// Whether managed instance scaling is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ScalingStatus {
    /// The number of instances follows.
    Enabled,
    /// It stays.
    Disabled,
}

/// How instances are given up when there is less to host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ScaleInPolicy {
    /// Which instances go.
    pub strategy: ScaleInStrategy,
    /// How many at a time, 1 to 100; 1 if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_step_size: Option<u32>,
    /// How long to wait before the next, 5 to 1,440 min; 20 if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_in_minutes: Option<u32>,
}

/// Which instances are given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ScaleInStrategy {
    /// Those that hold no copy.
    IdleRelease,
    /// Also those whose copies fit elsewhere.
    Consolidation,
}

/// How a request finds its instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct RoutingConfig {
    /// The strategy.
    pub routing_strategy: RoutingStrategy,
    /// The parameters of `PREFIX_AWARE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_aware_routing_config: Option<PrefixAwareRouting>,
}

/// SageMaker's strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RoutingStrategy {
    /// The instance with the fewest requests.
    LeastOutstandingRequests,
    /// Any instance.
    Random,
    /// Equal prefixes to the same instance.
    PrefixAware,
    /// Where the engines hold the prompt's beginning.
    KvAware,
}

/// The parameters of `PREFIX_AWARE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct PrefixAwareRouting {
    /// 1,024 to 65,536 bytes, or characters on the OpenAI path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_length: Option<u32>,
    /// 1 to 1,024 requests in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_threshold: Option<u32>,
}
