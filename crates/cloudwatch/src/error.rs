//! What CloudWatch's operations refuse, in the words of its model.

use crate::TooManyMetrics;

/// A refusal: its shape in the model, the code of the query protocol, its status, and a message for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    /// The name of the shape, for the protocols that carry shapes.
    pub shape: &'static str,
    /// The code that the query protocol carries, and that clients show.
    pub code: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl Refusal {
    const fn new(shape: &'static str, code: &'static str, status: u16, message: String) -> Refusal {
        Refusal { shape, code, status, message }
    }

    /// A constraint of the model, or of what is supported, is not met.
    pub fn validation(message: impl Into<String>) -> Refusal {
        Refusal::new("ValidationException", "ValidationError", 400, message.into())
    }

    /// A parameter has a value that can't be.
    pub fn value(message: impl Into<String>) -> Refusal {
        Refusal::new("InvalidParameterValueException", "InvalidParameterValue", 400, message.into())
    }

    /// Parameters don't go together.
    pub fn combination(message: impl Into<String>) -> Refusal {
        Refusal::new("InvalidParameterCombinationException", "InvalidParameterCombination", 400, message.into())
    }

    /// A parameter is missing.
    pub fn missing(parameter: &str) -> Refusal {
        let message = format!("The parameter {parameter} is required.");
        Refusal::new("MissingRequiredParameterException", "MissingParameter", 400, message)
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Refusal {
        Refusal::new("ResourceNotFound", "ResourceNotFound", 404, message.into())
    }

    /// A token to go on from was not made by this service for this request.
    pub fn next_token() -> Refusal {
        let message = "The next token is not valid: use the NextToken of the answer before, with the same request.";
        Refusal::new("InvalidNextToken", "InvalidNextToken", 400, message.to_owned())
    }

    /// Text that should be JSON is not.
    pub fn format(message: impl Into<String>) -> Refusal {
        Refusal::new("InvalidFormatFault", "InvalidFormat", 400, message.into())
    }

    /// There is as much as there may be.
    pub fn limit(message: impl Into<String>) -> Refusal {
        Refusal::new("LimitExceededFault", "LimitExceeded", 400, message.into())
    }

    /// The body can't be read in its protocol.
    pub fn serialization(message: impl Into<String>) -> Refusal {
        Refusal::new("SerializationException", "MalformedInput", 400, message.into())
    }

    /// An operation that this service does not have.
    pub fn unknown_operation(name: &str) -> Refusal {
        let message = format!(
            "CloudWatch's operation {name:?} is not known here; known are {}.",
            crate::service::OPERATIONS.map(|(name, _)| name).join(", ")
        );
        Refusal::new("UnknownOperationException", "InvalidAction", 400, message)
    }

    /// The router itself failed.
    pub fn internal(message: impl Into<String>) -> Refusal {
        Refusal::new("InternalServiceFault", "InternalServiceError", 500, message.into())
    }

    /// Whose fault it is, in the query protocol's words.
    pub fn fault(&self) -> &'static str {
        if self.status < 500 { "Sender" } else { "Receiver" }
    }
}

impl From<TooManyMetrics> for Refusal {
    fn from(error: TooManyMetrics) -> Refusal {
        Refusal::limit(error.to_string())
    }
}

impl From<isotherm_store::StoreError> for Refusal {
    fn from(error: isotherm_store::StoreError) -> Refusal {
        Refusal::internal(format!("Alarms could not be kept: {error}"))
    }
}
