//! Bytes to types and back: OpenAI's, Anthropic's and SageMaker's APIs, events, errors.
//!
//! Nothing here keeps, copies or re-serialises a body: a request is described from borrowed bytes ([`request`]), a
//! response is watched while it passes ([`sse`], [`response`]). Every parser takes any bytes without a panic, in time
//! linear in their number and in memory with a stated bound.

pub mod api;
pub mod aws;
pub mod error;
pub mod eventstream;
pub mod guard;
mod json;
pub mod request;
pub mod response;
pub mod sagemaker;
pub mod sigv4;
pub mod sse;
pub mod usage;
