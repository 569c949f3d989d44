//! The data plane from outside: real sockets, scripted instances, and clients that misbehave.

#![expect(clippy::unwrap_used, reason = "what the harness cannot set up fails the test")]

mod client;
mod origin;
mod router;

mod access_log;
mod adaptive;
mod clients_that_leave;
mod headers_both_ways;
mod http2;
mod include_usage;
mod limits;
mod models_and_health;
mod places;
mod retries;
mod stopping;
mod streams;
mod transparency;
