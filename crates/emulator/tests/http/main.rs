//! Emulators over real sockets: what clients see, and what tests can see of clients.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adapters;
mod answers;
mod cancellation;
mod client;
mod errors;
mod faults;
mod lifecycle;
mod metrics;
mod native;
mod observed;
mod responses;
mod streams;
mod tools;
