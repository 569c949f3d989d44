//! `timeouts`: how long the router waits, and for what.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration;

/// How long the router waits, and for what; as `500ms`, `10s`, `5m` or `1h`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// For a connection to an instance.
    #[serde(with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub connect: Duration,
    /// From sending a request whole to the first byte of the response's body. A long prefill under load takes minutes;
    /// the default is what OpenAI's clients wait for a whole request.
    #[serde(with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub first_byte: Duration,
    /// Between two pieces of a response's body.
    #[serde(with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub idle: Duration,
    /// From a request's arrival to the end of its response; no limit when absent.
    #[serde(with = "duration::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration::schema")]
    pub total: Option<Duration>,
    /// From a request's arrival to the end of its response, on SageMaker's paths and unless it is a stream.
    #[serde(with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub invocation: Duration,
    /// The same for streams.
    #[serde(with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub invocation_stream: Duration,
    /// For a client to send the head of a request, the first one of a connection and those that follow.
    #[serde(with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub client_header: Duration,
    /// For the next kibibyte of a request's body, or what is left of it.
    #[serde(with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub client_body: Duration,
    /// How long an unused connection to an instance is kept. Must be shorter than the engine keeps it (vLLM: 5 s), else
    /// requests meet connections that are just being closed.
    #[serde(with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub pool_idle: Duration,
    /// How long new requests are still taken after a request to stop, while `/readyz` says already that none should be
    /// sent: as long as load balancers in front take to notice.
    #[serde(with = "duration::or_zero")]
    #[schemars(schema_with = "duration::schema")]
    pub shutdown_delay: Duration,
    /// For streams in flight to end after that.
    #[serde(with = "duration::or_zero")]
    #[schemars(schema_with = "duration::schema")]
    pub shutdown_grace: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            // A little more than the second after which Linux sends a lost SYN again (RFC 6298, 2.1).
            connect: Duration::from_millis(1_500),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(120),
            total: None,
            invocation: Duration::from_secs(60),
            invocation_stream: Duration::from_secs(480),
            client_header: Duration::from_secs(10),
            client_body: Duration::from_secs(30),
            pool_idle: Duration::from_secs(4),
            shutdown_delay: Duration::ZERO,
            shutdown_grace: Duration::from_secs(30),
        }
    }
}
