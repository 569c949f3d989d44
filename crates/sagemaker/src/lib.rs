//! SageMaker's control plane: its resources, their constraints, how endpoints come to be, change and go.

mod deployer;
mod deployment;
pub mod providers;
pub mod records;
pub mod routing;
pub mod shapes;

pub use deployer::Deployer;
