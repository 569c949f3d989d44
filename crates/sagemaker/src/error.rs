//! Errors as SageMaker's protocol says them.

use isotherm_store::StoreError;
use isotherm_wire::aws;

use crate::routing::NotOurs;

/// Why an operation was refused. Each is a type and a message in the answer's body; every fault of the caller's is 400.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The request breaks a constraint or a rule, or names something that is not there.
    #[error("{0}")]
    Validation(String),
    /// It asks for more than may run for an account.
    #[error("{0}")]
    LimitExceeded(String),
    /// The body is not JSON, or a value in it is of another type.
    #[error("{0}")]
    Serialization(String),
    /// There is no such operation.
    #[error("{0}")]
    UnknownOperation(String),
    /// The store could not be read or written. What happened is for the log, not for the caller.
    #[error("The request could not be processed because the store of the control plane failed. Its log says why.")]
    Store(#[from] StoreError),
    /// A record could not be turned into an answer.
    #[error("The request could not be processed because of an internal failure. The log says why.")]
    Answer(#[from] serde_json::Error),
    /// The process stopped, or the operation panicked.
    #[error("The operation was interrupted.")]
    Interrupted,
}

impl ServiceError {
    /// The type that clients tell errors by.
    pub const fn kind(&self) -> &'static str {
        match self {
            ServiceError::Validation(_) => "ValidationException",
            ServiceError::LimitExceeded(_) => "ResourceLimitExceeded",
            ServiceError::Serialization(_) => "SerializationException",
            ServiceError::UnknownOperation(_) => "UnknownOperationException",
            ServiceError::Store(_) | ServiceError::Answer(_) | ServiceError::Interrupted => "InternalFailure",
        }
    }

    /// As it is told to a client.
    pub(crate) fn told(&self) -> aws::ServiceError {
        let status = if self.kind() == "InternalFailure" { 500 } else { 400 };
        aws::ServiceError::new(status, self.kind(), self.to_string())
    }
}

impl From<NotOurs> for ServiceError {
    fn from(error: NotOurs) -> ServiceError {
        ServiceError::Validation(error.to_string())
    }
}
