//! SageMaker's control plane: its resources, their constraints, how endpoints come to be, change and go.

mod arn;
mod constraints;
mod control_plane;
mod deployer;
pub mod deployment;
mod error;
mod listing;
mod operations;
pub mod providers;
pub mod records;
pub mod routing;
mod rules;
pub mod shapes;

pub use arn::ResourceKind;
pub use control_plane::ControlPlane;
pub use deployer::Deployer;
pub use error::ServiceError;
