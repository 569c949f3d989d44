//! Endpoints that come, change and go on emulated engines behind the real data plane, and what clients see of it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod changes;
mod components;
mod load;
mod place;
mod restarts;
