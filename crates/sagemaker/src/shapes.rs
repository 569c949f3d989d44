//! SageMaker's shapes, as they come in requests, lie in records and go out in answers.
//!
//! A member that Isotherm only gives back is kept as the JSON that passed the constraints ([`Echoed`]); what decides
//! something has a type. Names and meanings are those of SageMaker's API.

mod component;
mod container;
mod deployment;
mod endpoint;
mod timestamp;
mod variant;

pub use component::{
    ComponentCapacitySize, ComponentCapacitySizeType, ComponentCompute, ComponentContainer, ComponentDeploymentConfig,
    ComponentRollingUpdate, ComponentRuntimeConfig, ComponentScheduling, ComponentSpecification, PlacementStatus,
    PlacementStrategy, StartupParameters,
};
pub use container::{ContainerDefinition, DeployedImage, Environment, ModelSettings, Tag};
pub use deployment::{
    Alarm, AutoRollback, BlueGreenUpdate, CapacitySize, CapacitySizeType, DeploymentConfig, RollingUpdate,
    TrafficRouting, TrafficRoutingType,
};
pub use endpoint::{
    DesiredWeightAndCapacity, EndpointConfigSettings, EndpointStatus, InferenceComponentStatus, VariantProperty,
    VariantPropertyType, VariantStage, VariantStatus,
};
pub use timestamp::Timestamp;
pub use variant::{
    InstancePool, ManagedInstanceScaling, PrefixAwareRouting, ProductionVariant, RoutingConfig, RoutingStrategy,
    ScaleInPolicy, ScaleInStrategy, ScalingStatus, Serverless,
};

/// A member that is given back as it came.
pub type Echoed = serde_json::Value;
