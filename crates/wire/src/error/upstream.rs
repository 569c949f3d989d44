//! The status that an engine's error means, when its HTTP status does not say.

use crate::json::{Cursor, Malformed, Value};

/// The HTTP status, 400 to 599, that an error JSON means. Engines that have answered `200` before they know better put
/// the error into the first event of the stream, and its status into the JSON:
///
/// - vLLM and SGLang: `{"error": {"code": 400, …}}`, before that `{"object": "error", "code": 400, …}`;
/// - llama.cpp: `{"error": {"code": 503, "type": "unavailable_error", …}}`;
/// - OpenAI: names only, `{"error": {"type": "rate_limit_error", "code": "rate_limit_exceeded", …}}`;
/// - Anthropic: `{"type": "error", "error": {"type": "overloaded_error", …}}`.
///
/// A number is taken first, then the name in `code`, then the name in `type`; what tells nothing is 500, since a server
/// that fails without saying why has failed itself.
pub fn status_of_error(json: &[u8]) -> u16 {
    let mut clues = Clues::default();
    // Where the JSON breaks off, what stood before it counts.
    let _: Result<(), Malformed> = clues.read(&mut Cursor::new(json), true);
    clues.number.or(clues.code).or(clues.kind).unwrap_or(500)
}

/// Statuses that different members hint at.
#[derive(Debug, Default)]
struct Clues {
    number: Option<u16>,
    code: Option<u16>,
    kind: Option<u16>,
}

impl Clues {
    fn read(&mut self, cursor: &mut Cursor<'_>, at_top: bool) -> Result<(), Malformed> {
        let Some(mut members) = cursor.members() else { return Ok(()) };
        while let Some(key) = members.next_key()? {
            match key.decoded().as_ref() {
                b"error" if at_top => self.read(members.cursor(), false)?,
                b"code" => {
                    let code = members.value()?;
                    self.number = status(code).or(self.number);
                    self.code = named(code).or(self.code);
                }
                b"status" | b"status_code" => self.number = self.number.or(status(members.value()?)),
                b"type" => self.kind = named(members.value()?).or(self.kind),
                _ => {}
            }
        }
        Ok(())
    }
}

/// A number, also one in quotes, that is the status of an error.
fn status(value: Value<'_>) -> Option<u16> {
    let number = match value.string() {
        Some(string) => string.decode().parse().ok()?,
        None => u16::try_from(value.integer()?).ok()?,
    };
    (400..600).contains(&number).then_some(number)
}

/// The status that a name stands for. Names of OpenAI's and Anthropic's documentation, of the exceptions of OpenAI's SDK
/// (which vLLM and SGLang use as types) and of llama.cpp's `format_error_response`.
fn named(value: Value<'_>) -> Option<u16> {
    Some(match value.string()?.decode().as_ref() {
        "invalid_request_error"
        | "BadRequestError"
        | "BadRequest"
        | "ValidationError"
        | "validation_error"
        | "context_length_exceeded"
        | "exceed_context_size_error" => 400,
        "authentication_error" | "AuthenticationError" | "invalid_api_key" => 401,
        "billing_error" => 402,
        "permission_error" | "PermissionDeniedError" => 403,
        "not_found_error" | "NotFoundError" | "model_not_found" => 404,
        "ConflictError" => 409,
        "request_too_large" => 413,
        "UnprocessableEntityError" => 422,
        "rate_limit_error" | "RateLimitError" | "rate_limit_exceeded" | "insufficient_quota" => 429,
        "server_error" | "api_error" | "internal_error" | "InternalServerError" | "internal_server_error" => 500,
        "not_supported_error" | "NotImplementedError" => 501,
        "service_unavailable" | "ServiceUnavailableError" | "unavailable_error" => 503,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_errors_get_the_status_they_mean() {
        let cases = [
            (400, r#"{"error":{"message":"too long","type":"BadRequestError","param":null,"code":400}}"#),
            (404, r#"{"error":{"object":"error","message":"?","type":"NotFoundError","param":null,"code":404}}"#),
            (503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#),
            (400, r#"{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}"#),
            (429, r#"{"error":{"message":"slow","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#),
            (429, r#"{"type":"error","code":"rate_limit_exceeded","message":"slow","param":null}"#),
            (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
            (500, r#"{"type":"error","error":{"type":"internal_error","message":"?"}}"#),
            (422, r#"{"error":{"message":"?","code":"422"}}"#),
            (409, r#"{"error":{"message":"?","status":409}}"#),
        ];
        for (status, json) in cases {
            assert_eq!(status_of_error(json.as_bytes()), status, "{json}");
        }
    }

    #[test]
    fn what_tells_nothing_is_a_server_error() {
        for json in ["", "oops", "{}", r#"{"error":"oops"}"#, r#"{"error":{"code":200}}"#, r#"{"error":{"code":null}}"#]
        {
            assert_eq!(status_of_error(json.as_bytes()), 500, "{json}");
        }
    }

    #[test]
    fn an_error_whose_end_is_missing_counts_by_its_beginning() {
        assert_eq!(status_of_error(br#"{"error":{"code":400,"message":"the prompt is too lo"#), 400);
    }
}
