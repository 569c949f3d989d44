//! The data plane from outside: real sockets, scripted instances, and clients that misbehave.

mod client;
mod origin;
mod router;

mod adaptive;
mod clients_that_leave;
mod headers_both_ways;
mod http2;
mod limits;
mod models_and_health;
mod places;
mod retries;
mod stopping;
mod streams;
mod transparency;
