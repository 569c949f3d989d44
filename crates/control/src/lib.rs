//! The admin plane: metrics, health, changes of the fleet while it serves, and reloading the configuration; and the front
//! door of AWS's services.

mod admin;
mod alerts;
mod answer;
mod api;
mod aws;
mod dashboard;
mod diagnosis;
pub mod doctor;
mod guard;
mod listener;
mod observer;
mod otlp;
mod reload;
mod shadow;
mod token;

pub use admin::{AdminPlane, AdminState, Analyst, ConfigInForce, Deployment, Deployments, Opening};
pub use aws::{FrontDoor, Services};
pub use diagnosis::{Diagnosis, Held, MissReason, Nearest, Place, Placed, Verdict};
pub use otlp::OtlpExporter;
pub use reload::{Reload, Reloader};
pub use token::{AdminToken, TokenError};
