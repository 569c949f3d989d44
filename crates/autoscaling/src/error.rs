//! What the operations refuse, in the words of the API's model.

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{shape}: {message}")]
pub(crate) struct Refusal {
    /// The name of the exception's shape.
    pub(crate) shape: &'static str,
    /// What is wrong, and what would be right.
    pub(crate) message: String,
}

impl Refusal {
    /// A constraint is not met, or something is not supported.
    pub(crate) fn validation(message: impl Into<String>) -> Refusal {
        Refusal { shape: "ValidationException", message: message.into() }
    }

    /// There is no such target or policy.
    pub(crate) fn not_found(message: impl Into<String>) -> Refusal {
        Refusal { shape: "ObjectNotFoundException", message: message.into() }
    }

    /// There is no such resource with tags.
    pub(crate) fn no_resource(message: impl Into<String>) -> Refusal {
        Refusal { shape: "ResourceNotFoundException", message: message.into() }
    }

    /// There is as much as there may be.
    pub(crate) fn limit(message: impl Into<String>) -> Refusal {
        Refusal { shape: "LimitExceededException", message: message.into() }
    }

    /// A token to go on from was not made by this service.
    pub(crate) fn next_token() -> Refusal {
        Refusal { shape: "InvalidNextTokenException", message: "Invalid next token.".to_owned() }
    }

    /// An operation that this service does not have.
    pub(crate) fn unknown_operation(name: &str) -> Refusal {
        let known = crate::service::OPERATIONS.map(|(name, _)| name).join(", ");
        let message = format!("Application Auto Scaling's operation {name:?} is not known here; known are {known}.");
        Refusal { shape: "UnknownOperationException", message }
    }

    /// The router itself failed.
    pub(crate) fn internal(message: impl Into<String>) -> Refusal {
        Refusal { shape: "InternalServiceException", message: message.into() }
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> u16 {
        if self.shape == "InternalServiceException" { 500 } else { 400 }
    }
}

impl From<isotherm_store::StoreError> for Refusal {
    fn from(error: isotherm_store::StoreError) -> Refusal {
        Refusal::internal(format!("The change could not be kept: {error}"))
    }
}
