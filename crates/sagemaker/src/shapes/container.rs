//! Models and their containers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Echoed, Timestamp};

/// Environment variables of a container.
pub type Environment = BTreeMap<String, String>;

/// What a model is made of, without its name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ModelSettings {
    /// The only container, or the one that answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_container: Option<ContainerDefinition>,
    /// The containers of a pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers: Option<Vec<ContainerDefinition>>,
    /// How the containers of a pipeline are called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inference_execution_config: Option<Echoed>,
    /// The role that SageMaker would take on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_role_arn: Option<String>,
    /// The network that SageMaker would use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_config: Option<Echoed>,
    /// Whether containers may not call out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_network_isolation: Option<bool>,
}

impl ModelSettings {
    /// The container that decides what runs: the primary one, else the first of a pipeline.
    pub fn container(&self) -> Option<&ContainerDefinition> {
        self.primary_container.as_ref().or_else(|| self.containers.as_ref()?.first())
    }
}

/// A container of a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ContainerDefinition {
    /// Its name in a pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_hostname: Option<String>,
    /// The image; providers may match it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// How the image is fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_config: Option<Echoed>,
    /// `SingleModel` or `MultiModel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Where the model lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_data_url: Option<String>,
    /// Where the model lies, in more words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_data_source: Option<Echoed>,
    /// Where more of it lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_model_data_sources: Option<Echoed>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: Environment,
    /// The model package, instead of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_package_name: Option<String>,
    /// Which specification of the package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inference_specification_name: Option<String>,
    /// Cache of a multi-model container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi_model_config: Option<Echoed>,
    /// Where the container's metrics are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_metrics_config: Option<Echoed>,
}

/// An image that was deployed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeployedImage {
    /// As it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub specified_image: Option<String>,
    /// As it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_image: Option<String>,
    /// When it was looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution_time: Option<Timestamp>,
}

/// A key and a value that a user hangs on a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Tag {
    /// Unique on its resource.
    pub key: String,
    /// May be empty.
    pub value: String,
}
