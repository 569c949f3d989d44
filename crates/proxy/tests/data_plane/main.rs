//! The data plane from outside: real sockets, scripted instances, and clients that misbehave.

#![expect(clippy::unwrap_used, reason = "what the harness cannot set up fails the test")]

mod client;
mod frames;
mod managed;
mod origin;
mod router;
mod signer;
#[expect(unreachable_pub, reason = "it belongs to the library of the tests through the front door")]
#[path = "../../../../tests/src/stopwatch.rs"]
mod stopwatch;

mod access_log;
mod adaptive;
mod async_inference;
mod breakpoints;
mod clients_that_leave;
mod compliance;
mod conformance;
mod deployments;
mod desync;
mod failing_instances;
mod floods;
mod guards;
mod headers_both_ways;
mod http2;
mod identity;
mod identity_of_aws;
mod include_usage;
mod json_corpus;
mod limits;
mod load;
mod messages;
mod models_and_health;
mod overload;
mod places;
mod retries;
mod runtime_native;
mod runtime_openai;
mod runtime_stream;
mod sessions;
mod shadow;
mod stopping;
mod streams;
mod tenants;
mod transparency;
