//! Errors of the router's own as the caller's API spells them.

use std::borrow::Cow;

use serde_json::{Value, json};

mod upstream;

pub use upstream::status_of_error;

/// The form in which a caller expects an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `{"error": {"message", "type", "param", "code"}}`: all four are required by OpenAI's `Error` schema.
    OpenAi,
    /// `{"type": "error", "error": {"type", "message"}}`.
    Anthropic,
    /// SageMaker runtime's `{"Message": …}`, with the error's name in the header `x-amzn-ErrorType`.
    SageMaker,
    /// What SageMaker makes of OpenAI's form: `{"error": {"message", "type", "code"}}` with codes of its own.
    SageMakerOpenAi,
}

/// What went wrong, by the name that clients act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request cannot be understood, or asks for what is not allowed.
    InvalidRequest,
    /// No credential, or a wrong one.
    Authentication,
    /// A credential whose time is over.
    Expired,
    /// A good credential that may not do this.
    Permission,
    /// Nothing is served at this path.
    NotFound,
    /// No instance serves the model asked for.
    ModelNotFound,
    /// The path exists, the method does not.
    MethodNotAllowed,
    /// The client took too long to send its request.
    RequestTimeout,
    /// The body is longer than the limit.
    BodyTooLarge,
    /// The path and query are longer than the limit.
    UriTooLong,
    /// The header fields are longer than the limit.
    HeadersTooLarge,
    /// Too much at once: shed, come back later.
    TooManyRequests,
    /// A fault of the router itself.
    Internal,
    /// The instance broke the connection or answered nonsense.
    BadGateway,
    /// No instance can take the request now.
    Unavailable,
    /// The instance did not answer in time.
    GatewayTimeout,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [ErrorKind; 16] = [
        ErrorKind::InvalidRequest,
        ErrorKind::Authentication,
        ErrorKind::Expired,
        ErrorKind::Permission,
        ErrorKind::NotFound,
        ErrorKind::ModelNotFound,
        ErrorKind::MethodNotAllowed,
        ErrorKind::RequestTimeout,
        ErrorKind::BodyTooLarge,
        ErrorKind::UriTooLong,
        ErrorKind::HeadersTooLarge,
        ErrorKind::TooManyRequests,
        ErrorKind::Internal,
        ErrorKind::BadGateway,
        ErrorKind::Unavailable,
        ErrorKind::GatewayTimeout,
    ];

    /// The HTTP status. SageMaker's differs for a few: it knows no 401, names a missing thing in a 400 and reports every
    /// failure of a container as 424. (It has been seen to send `ThrottlingException` as 400. Its SDKs retry that by its
    /// name, whatever the status, and other clients know 429 only.)
    pub fn status(self, dialect: Dialect) -> u16 {
        if dialect == Dialect::SageMaker {
            match self {
                ErrorKind::Authentication | ErrorKind::Expired => return 403,
                ErrorKind::NotFound | ErrorKind::ModelNotFound => return 400,
                ErrorKind::BadGateway | ErrorKind::GatewayTimeout => return 424,
                _ => {}
            }
        }
        if dialect == Dialect::SageMakerOpenAi && matches!(self, ErrorKind::NotFound | ErrorKind::ModelNotFound) {
            return 400;
        }
        self.names().status
    }

    /// The value of SageMaker's header `x-amzn-ErrorType`, by which its SDKs choose the exception and whether to retry.
    /// `None` where SageMaker sends none.
    pub fn sagemaker_type(self) -> Option<&'static str> {
        Some(match self {
            ErrorKind::InvalidRequest | ErrorKind::NotFound | ErrorKind::ModelNotFound => "ValidationError",
            ErrorKind::Authentication | ErrorKind::Permission => "AccessDeniedException",
            ErrorKind::Expired => "ExpiredTokenException",
            ErrorKind::TooManyRequests => "ThrottlingException",
            ErrorKind::Internal => "InternalFailure",
            ErrorKind::Unavailable => "ServiceUnavailable",
            ErrorKind::BadGateway | ErrorKind::GatewayTimeout => "ModelError",
            ErrorKind::MethodNotAllowed
            | ErrorKind::RequestTimeout
            | ErrorKind::BodyTooLarge
            | ErrorKind::UriTooLong
            | ErrorKind::HeadersTooLarge => return None,
        })
    }

    /// The code on SageMaker's OpenAI-compatible path, where it is not OpenAI's own.
    fn sagemaker_openai_code(self) -> Option<&'static str> {
        match self.sagemaker_type() {
            Some("ValidationError") => Some("validation_error"),
            Some("ModelError") => Some("model_error"),
            _ => None,
        }
    }

    /// One row a kind: what it is called where. OpenAI's names are those that its SDKs and documentation use, Anthropic's
    /// those of its error table (a missing status there takes the nearest meaning).
    fn names(self) -> Names {
        let (status, openai_type, openai_code, anthropic_type) = match self {
            ErrorKind::InvalidRequest => (400, "invalid_request_error", None, "invalid_request_error"),
            ErrorKind::Authentication => (401, "authentication_error", Some("invalid_api_key"), "authentication_error"),
            ErrorKind::Expired => (401, "authentication_error", Some("expired_token"), "authentication_error"),
            ErrorKind::Permission => (403, "permission_error", Some("permission_denied"), "permission_error"),
            ErrorKind::NotFound => (404, "not_found_error", Some("unknown_url"), "not_found_error"),
            ErrorKind::ModelNotFound => (404, "not_found_error", Some("model_not_found"), "not_found_error"),
            ErrorKind::MethodNotAllowed => {
                (405, "invalid_request_error", Some("method_not_allowed"), "invalid_request_error")
            }
            ErrorKind::RequestTimeout => (408, "invalid_request_error", Some("request_timeout"), "timeout_error"),
            ErrorKind::BodyTooLarge => (413, "invalid_request_error", Some("request_too_large"), "request_too_large"),
            ErrorKind::UriTooLong => (414, "invalid_request_error", Some("uri_too_long"), "invalid_request_error"),
            ErrorKind::HeadersTooLarge => {
                (431, "invalid_request_error", Some("headers_too_large"), "invalid_request_error")
            }
            ErrorKind::TooManyRequests => (429, "rate_limit_error", Some("rate_limit_exceeded"), "rate_limit_error"),
            ErrorKind::Internal => (500, "server_error", Some("internal_error"), "api_error"),
            ErrorKind::BadGateway => (502, "server_error", Some("bad_gateway"), "api_error"),
            ErrorKind::Unavailable => (503, "service_unavailable", Some("service_unavailable"), "overloaded_error"),
            ErrorKind::GatewayTimeout => (504, "server_error", Some("gateway_timeout"), "timeout_error"),
        };
        Names { status, openai_type, openai_code, anthropic_type }
    }
}

/// How one kind of error is called.
struct Names {
    status: u16,
    openai_type: &'static str,
    openai_code: Option<&'static str>,
    anthropic_type: &'static str,
}

/// An error as it will be told to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorBody<'a> {
    /// What went wrong.
    pub kind: ErrorKind,
    /// What was wrong, where, and what would be right, in words. Never holds a prompt, a key or an address of the fleet.
    pub message: Cow<'a, str>,
    /// The request's field that is to blame (OpenAI's `param`).
    pub param: Option<Cow<'a, str>>,
}

impl<'a> ErrorBody<'a> {
    /// An error that blames no field.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'a, str>>) -> Self {
        ErrorBody { kind, message: message.into(), param: None }
    }

    /// The same error, blaming the field `param`.
    pub fn with_param(mut self, param: impl Into<Cow<'a, str>>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// The body of the response, `application/json` in every dialect.
    pub fn to_json(&self, dialect: Dialect) -> Vec<u8> {
        self.value(dialect).to_string().into_bytes()
    }

    /// The error as the last events of a stream that has begun and cannot go on. Every OpenAI SDK raises on an event
    /// with a top-level `error`, and waits for `[DONE]`; Anthropic's raise on an event named `error`. SageMaker's own
    /// framing is no event stream of this kind: there a container's stream is in OpenAI's form.
    pub fn to_events(&self, dialect: Dialect) -> Vec<u8> {
        match dialect {
            Dialect::OpenAi | Dialect::SageMaker => {
                format!("data: {}\n\ndata: [DONE]\n\n", self.value(Dialect::OpenAi)).into_bytes()
            }
            Dialect::SageMakerOpenAi => format!("data: {}\n\ndata: [DONE]\n\n", self.value(dialect)).into_bytes(),
            Dialect::Anthropic => format!("event: error\ndata: {}\n\n", self.value(dialect)).into_bytes(),
        }
    }

    fn value(&self, dialect: Dialect) -> Value {
        let names = self.kind.names();
        match dialect {
            Dialect::OpenAi => json!({"error": {
                "message": self.message,
                "type": names.openai_type,
                "param": self.param,
                "code": names.openai_code,
            }}),
            Dialect::Anthropic => json!({
                "type": "error",
                "error": {"type": names.anthropic_type, "message": self.message},
            }),
            Dialect::SageMakerOpenAi => json!({"error": {
                "message": self.message,
                "type": names.openai_type,
                "code": self.kind.sagemaker_openai_code().or(names.openai_code),
            }}),
            // SageMaker reports 0 for a container that gave no answer.
            Dialect::SageMaker if self.kind.sagemaker_type() == Some("ModelError") => json!({
                "Message": self.message,
                "OriginalStatusCode": 0,
                "OriginalMessage": "",
            }),
            Dialect::SageMaker => json!({"Message": self.message}),
        }
    }
}

#[cfg(test)]
mod tests;
