//! The admin plane: metrics, health, changes of the fleet while it serves, and reloading the configuration.

mod admin;
mod answer;
mod api;
mod guard;
mod reload;
mod token;

pub use admin::{AdminPlane, AdminState};
pub use reload::{Reload, Reloader};
pub use token::{AdminToken, TokenError};
