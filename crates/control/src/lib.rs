//! The admin plane: metrics, health, changes of the fleet while it serves, and reloading the configuration; and the front
//! door of AWS's services.

mod admin;
mod answer;
mod api;
mod aws;
mod dashboard;
mod guard;
mod observer;
mod reload;
mod token;
mod listener;

pub use admin::{AdminPlane, AdminState};
pub use aws::{FrontDoor, Services};
pub use reload::{Reload, Reloader};
pub use token::{AdminToken, TokenError};
