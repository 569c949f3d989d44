//! Why a request is refused, and the JSON that vLLM would send for it.

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use thiserror::Error;

use crate::reply::{Reply, ReplyBody};

/// An error response in waiting.
#[derive(Debug, Error, PartialEq)]
pub(crate) enum Failure {
    #[error("{0}")]
    Malformed(String),
    #[error("The model `{0}` does not exist.")]
    UnknownModel(String),
    #[error("The lora adapter '{0}' cannot be found.")]
    UnknownAdapter(String),
    #[error("Response with id '{0}' not found.")]
    UnknownResponse(String),
    #[error(
        "This model's maximum context length is {max_model_len} tokens. However, you requested {requested} output \
         tokens and your prompt contains {prompt_tokens} input tokens, for a total of {} tokens. Please reduce the \
         length of the input prompt or the number of requested output tokens.",
        prompt_tokens + requested
    )]
    ContextTooLong { max_model_len: u32, prompt_tokens: u32, requested: u32 },
    #[error("The request body is larger than {0} bytes.")]
    BodyTooLarge(usize),
    #[error("Unauthorized")]
    Unauthorized,
    #[error("Not Found")]
    UnknownPath,
    #[error("Method Not Allowed")]
    WrongMethod,
    #[error("The emulator was told to answer {status}.")]
    OnDemand { status: StatusCode, retry_after: Option<u32> },
    /// No response at all: the connection breaks.
    #[error("the emulator was told to break the connection")]
    Broken,
}

/// Whose error form a client expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Anthropic,
}

impl Failure {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Failure::Malformed(_) | Failure::ContextTooLong { .. } => StatusCode::BAD_REQUEST,
            Failure::UnknownModel(_)
            | Failure::UnknownAdapter(_)
            | Failure::UnknownResponse(_)
            | Failure::UnknownPath => StatusCode::NOT_FOUND,
            Failure::BodyTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Failure::Unauthorized => StatusCode::UNAUTHORIZED,
            Failure::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Failure::OnDemand { status, .. } => *status,
            Failure::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The body alone, which is also what a stream carries as an error event.
    ///
    /// Forms: vLLM's `ErrorResponse` (`code` is the number); its authentication middleware's bare string; FastAPI's
    /// `detail` for unknown paths and methods; Anthropic's `{"type": "error", …}` on `/v1/messages`.
    pub(crate) fn body(&self, dialect: Dialect) -> String {
        let message = self.to_string();
        let body = match self {
            Failure::Unauthorized => json!({"error": message}),
            Failure::UnknownPath | Failure::WrongMethod => json!({"detail": message}),
            _ if dialect == Dialect::Anthropic => {
                json!({"type": "error", "error": {"type": self.anthropic_type(), "message": message}})
            }
            _ => json!({"error": {
                "message": message,
                "type": self.openai_type(),
                "param": if matches!(self, Failure::UnknownModel(_)) { Some("model") } else { None },
                "code": self.status().as_u16(),
            }}),
        };
        body.to_string()
    }

    pub(crate) fn into_reply(self, dialect: Dialect) -> Reply {
        let mut reply = Reply::new(ReplyBody::whole(Bytes::from(self.body(dialect))));
        *reply.status_mut() = self.status();
        reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Failure::OnDemand { retry_after: Some(seconds), .. } = self {
            reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        reply
    }

    fn openai_type(&self) -> &'static str {
        match self.status() {
            StatusCode::NOT_FOUND => "NotFoundError",
            StatusCode::TOO_MANY_REQUESTS => "RateLimitError",
            status if status.is_server_error() => "InternalServerError",
            _ => "BadRequestError",
        }
    }

    fn anthropic_type(&self) -> &'static str {
        match self.status() {
            StatusCode::NOT_FOUND => "not_found_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
            status if status.is_server_error() => "api_error",
            _ => "invalid_request_error",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_model_reads_as_in_vllm() {
        let body = Failure::UnknownModel("x".into()).body(Dialect::OpenAi);
        let expected = json!({"error": {"message": "The model `x` does not exist.", "type": "NotFoundError",
            "param": "model", "code": 404}});
        assert_eq!(serde_json::from_str::<serde_json::Value>(&body).unwrap(), expected);
    }

    #[test]
    fn anthropic_clients_get_their_own_form() {
        let body = Failure::Malformed("no".into()).body(Dialect::Anthropic);
        let expected = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}});
        assert_eq!(serde_json::from_str::<serde_json::Value>(&body).unwrap(), expected);
    }

    #[test]
    fn too_long_a_context_tells_the_sum() {
        let failure = Failure::ContextTooLong { max_model_len: 100, prompt_tokens: 90, requested: 20 };
        assert!(failure.to_string().contains("a total of 110 tokens"));
        assert_eq!(failure.status(), StatusCode::BAD_REQUEST);
    }
}
