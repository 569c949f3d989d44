//! Endpoints and their configurations: settings, statuses, and what an update says of variants.

use serde::{Deserialize, Serialize};

use super::{Echoed, Timestamp};

/// What an endpoint configuration says besides its variants.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct EndpointConfigSettings {
    /// Which requests and answers would be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_capture_config: Option<Echoed>,
    /// The key that disks would be encrypted with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<String>,
    /// Where answers of asynchronous calls go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub async_inference_config: Option<Echoed>,
    /// Explanations of predictions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explainer_config: Option<Echoed>,
    /// The role; needed by endpoints that hold inference components.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_role_arn: Option<String>,
    /// The network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_config: Option<Echoed>,
    /// Whether containers may not call out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_network_isolation: Option<bool>,
    /// Which metrics are published, and how often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_config: Option<Echoed>,
    /// How much traffic other regions may send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cross_region_traffic_config: Option<Echoed>,
}

/// Where an endpoint is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndpointStatus {
    /// Not available.
    OutOfService,
    /// Its first instances are coming.
    Creating,
    /// It serves while it changes.
    Updating,
    /// It serves while its hosts are looked after.
    SystemUpdating,
    /// It serves while a change is taken back.
    RollingBack,
    /// It serves.
    InService,
    /// It is going.
    Deleting,
    /// It could not be made; it can only be deleted.
    Failed,
    /// A change could not be taken back.
    UpdateRollbackFailed,
}

impl EndpointStatus {
    /// SageMaker's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            EndpointStatus::OutOfService => "OutOfService",
            EndpointStatus::Creating => "Creating",
            EndpointStatus::Updating => "Updating",
            EndpointStatus::SystemUpdating => "SystemUpdating",
            EndpointStatus::RollingBack => "RollingBack",
            EndpointStatus::InService => "InService",
            EndpointStatus::Deleting => "Deleting",
            EndpointStatus::Failed => "Failed",
            EndpointStatus::UpdateRollbackFailed => "UpdateRollbackFailed",
        }
    }
}

/// Where an inference component is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum InferenceComponentStatus {
    /// It serves, or has no copies and is ready to get some.
    InService,
    /// Its first copies are coming.
    Creating,
    /// It serves while it changes.
    Updating,
    /// It could not be made.
    Failed,
    /// It is going.
    Deleting,
}

impl InferenceComponentStatus {
    /// SageMaker's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            InferenceComponentStatus::InService => "InService",
            InferenceComponentStatus::Creating => "Creating",
            InferenceComponentStatus::Updating => "Updating",
            InferenceComponentStatus::Failed => "Failed",
            InferenceComponentStatus::Deleting => "Deleting",
        }
    }
}

/// What happens to a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct VariantStatus {
    /// Which step.
    pub status: VariantStage,
    /// In words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
}

/// A step of a variant's change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VariantStage {
    /// Nothing changes, and there is something to say all the same. SageMaker has no such word: what is in service has
    /// no status there.
    InService,
    /// Instances come.
    Creating,
    /// Instances change.
    Updating,
    /// Instances go.
    Deleting,
    /// Traffic moves to the new instances.
    ActivatingTraffic,
    /// The new instances are watched.
    Baking,
}

/// A property of variants that an update may leave as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct VariantProperty {
    /// Which one.
    pub variant_property_type: VariantPropertyType,
}

/// The properties of variants that an update may leave as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VariantPropertyType {
    /// How many instances it wants.
    DesiredInstanceCount,
    /// Its share of traffic.
    DesiredWeight,
    /// Which requests and answers are kept.
    DataCaptureConfig,
}

/// A variant's new weight, its new number of instances, or both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DesiredWeightAndCapacity {
    /// The variant.
    pub variant_name: String,
    /// At least 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_weight: Option<f64>,
    /// At least 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_instance_count: Option<u32>,
    /// New capacity of a serverless variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serverless_update_config: Option<Echoed>,
}
