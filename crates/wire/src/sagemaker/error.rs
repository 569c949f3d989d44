//! Errors of the runtime API: their status, their name, and their wording, on the native and the OpenAI-compatible path.

mod model;

use std::borrow::Cow;

use serde_json::{Value, json};

pub use self::model::{Fault, ModelError, Scene};
use super::invalid::Invalid;
use crate::error::Dialect;

/// An error as SageMaker's runtime tells it.
#[derive(Debug, Clone, PartialEq)]
pub enum RuntimeError {
    /// `ValidationError`, 400: the request can't be meant, or names what is not there.
    Validation {
        /// What is wrong.
        message: Cow<'static, str>,
        /// `ErrorCode` of the body, where it has one.
        code: Option<&'static str>,
    },
    /// 413, without a name: the body is larger than so many bytes.
    TooLarge(u64),
    /// `ModelError`, 424: the container answered with an error, or not at all.
    Model(Box<ModelError>),
}

impl From<Invalid> for RuntimeError {
    fn from(invalid: Invalid) -> RuntimeError {
        RuntimeError::validation(invalid.to_string())
    }
}

impl RuntimeError {
    /// A `ValidationError` with this message.
    pub fn validation(message: impl Into<Cow<'static, str>>) -> RuntimeError {
        RuntimeError::Validation { message: message.into(), code: None }
    }

    /// There is no endpoint of that name.
    pub fn endpoint_not_found(endpoint: &str, account: &str) -> RuntimeError {
        RuntimeError::validation(format!("Endpoint {endpoint} of account {account} not found."))
    }

    /// The endpoint has no variant of that name.
    pub fn variant_not_found(variant: &str, endpoint: &str) -> RuntimeError {
        RuntimeError::validation(format!("Variant {variant} of endpoint {endpoint} not found."))
    }

    /// The endpoint serves inference components, and none was named.
    pub fn component_name_missing() -> RuntimeError {
        RuntimeError::Validation {
            message: "Inference Component Name header is required for endpoints to which you plan to deploy inference \
                      components. Please include Inference Component Name header or consider using SageMaker models."
                .into(),
            code: Some("INFERENCE_COMPONENT_NAME_MISSING"),
        }
    }

    /// The endpoint serves a model of its own, and an inference component was named.
    pub fn component_name_not_allowed() -> RuntimeError {
        RuntimeError::validation(
            "Inference Component Name header is not allowed for endpoints to which you don't plan to deploy inference \
             components. Please remove the Inference Component Name header.",
        )
    }

    /// The OpenAI-compatible path names the component itself.
    pub fn component_header_not_allowed_on_path() -> RuntimeError {
        RuntimeError::validation(
            "Header X-Amzn-SageMaker-Inference-Component is not allowed on this path. Name the inference component in \
             the path: /endpoints/{endpoint}/inference-components/{inference component}/openai/v1/chat/completions.",
        )
    }

    /// The endpoint has no inference component of that name.
    pub fn component_not_found(component: &str, endpoint: &str) -> RuntimeError {
        RuntimeError::validation(format!("Inference Component {component} of endpoint {endpoint} not found."))
    }

    /// The inference component has no copy.
    pub fn no_capacity() -> RuntimeError {
        RuntimeError::validation(
            "Inference Component has no capacity to process this request. ApplicationAutoScaling may be in-progress \
             (if configured) or try to increase the capacity by invoking UpdateInferenceComponentRuntimeConfig API.",
        )
    }

    /// No session of that id was begun on the endpoint, or it was closed.
    pub fn session_not_found(session: &str, endpoint: &str) -> RuntimeError {
        RuntimeError::validation(format!("Session {session} of endpoint {endpoint} not found."))
    }

    /// The session has come to its end.
    pub fn session_expired(session: &str) -> RuntimeError {
        RuntimeError::validation(format!("Session {session} has expired. Begin a new one with NEW_SESSION."))
    }

    /// The instance of the session is gone, and the session with it.
    pub fn session_lost(session: &str) -> RuntimeError {
        RuntimeError::validation(format!(
            "The instance of session {session} is no longer available, and the session with it. Begin a new one with \
             NEW_SESSION."
        ))
    }

    /// The status: on the OpenAI-compatible path, an error of the container keeps its own.
    pub fn status(&self, dialect: Dialect) -> u16 {
        match self {
            RuntimeError::Validation { .. } => 400,
            RuntimeError::TooLarge(_) => 413,
            RuntimeError::Model(error) if dialect == Dialect::SageMakerOpenAi => error.openai_status(),
            RuntimeError::Model(_) => 424,
        }
    }

    /// The value of the header `x-amzn-ErrorType` on the native paths, by which SDKs choose the exception.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            RuntimeError::Validation { .. } => Some("ValidationError"),
            RuntimeError::TooLarge(_) => None,
            RuntimeError::Model(_) => Some("ModelError"),
        }
    }

    /// Whether the container may have begun to generate, so that nobody should send the request again by himself.
    pub fn may_have_generated(&self) -> bool {
        matches!(self, RuntimeError::Model(error) if error.fault.is_silence())
    }

    /// The body, `application/json`.
    pub fn to_json(&self, dialect: Dialect) -> Vec<u8> {
        let value = if dialect == Dialect::SageMakerOpenAi { self.openai() } else { self.native() };
        value.to_string().into_bytes()
    }

    fn native(&self) -> Value {
        match self {
            RuntimeError::Validation { message, code: None } => json!({ "Message": message }),
            RuntimeError::Validation { message, code: Some(code) } => json!({ "ErrorCode": code, "Message": message }),
            RuntimeError::TooLarge(limit) => json!({ "Message": too_large(*limit) }),
            RuntimeError::Model(error) => error.native(),
        }
    }

    fn openai(&self) -> Value {
        let (message, kind, code) = match self {
            RuntimeError::Validation { message, .. } => (message.clone(), "invalid_request_error", "validation_error"),
            RuntimeError::TooLarge(limit) => (too_large(*limit).into(), "invalid_request_error", "validation_error"),
            RuntimeError::Model(error) => (error.message().into(), "server_error", "model_error"),
        };
        json!({ "error": { "message": message, "type": kind, "code": code } })
    }
}

/// What AWS says of a body over the limit.
fn too_large(limit: u64) -> String {
    format!("HTTP content length exceeded {limit} bytes.")
}

#[cfg(test)]
mod tests;
