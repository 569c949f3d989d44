//! The one table from what went wrong to what the client is told, in the dialect that it speaks.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use isotherm_telemetry::Outcome;
use isotherm_wire::aws::{Protocol, ServiceError};
use isotherm_wire::error::{Dialect, ErrorBody, ErrorKind};
use isotherm_wire::guard::Excess;
use isotherm_wire::request::Malformed;
use isotherm_wire::sagemaker::{Fault, RuntimeError};
use isotherm_wire::sigv4::Refusal;

use crate::headers::{ERROR_TYPE, RETRY_AFTER_MS, SERVICE_REQUEST_ID, SHOULD_RETRY};

/// What went wrong with a request, where the router itself answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// Nothing is served at the path.
    NoSuchPath,
    /// The path is served, by these methods.
    MethodNotAllowed(&'static str),
    /// Path and query are longer than this.
    UriTooLong(u64),
    /// The head is larger than this.
    HeadersTooLarge(u64),
    /// The target is none that its method can have.
    BadTarget,
    /// The request names no host, several, or what is none.
    BadHost,
    /// The deadline is no number of milliseconds.
    BadDeadline,
    /// The body is larger than this.
    BodyTooLarge(u64),
    /// The body did not come on for this long.
    BodyTooSlow(Duration),
    /// The body is badly framed.
    BodyBroken,
    /// The client left before its body was whole; nobody reads the answer.
    ClientLeft,
    /// No credential.
    NoKey,
    /// A credential that is no key.
    UnknownKey,
    /// A signature or token of AWS's kind that proves nothing.
    Signature(Refusal),
    /// A signature where only bearer tokens count.
    SignedNotBearer,
    /// A web page asks for what changes endpoints, where nobody is authenticated.
    WebPage,
    /// A key that may not do this.
    Denied {
        /// Whose it is, as an ARN.
        user: String,
        /// What it may not do, as IAM names actions.
        action: String,
        /// On what, as an ARN.
        resource: String,
    },
    /// The body is no JSON.
    Malformed(Malformed),
    /// The request asks for more than it may.
    Excess(Excess),
    /// The tenant id is none.
    BadTenantId,
    /// No variant has the name that was asked for.
    NoSuchVariant,
    /// No instance serves this model.
    ModelNotFound(Box<str>),
    /// No instance can take the request: none is in service, or all are down.
    Unavailable,
    /// As many requests wait as may wait.
    QueueFull,
    /// As many asynchronous invocations were accepted as may wait.
    BacklogFull,
    /// It waited as long as a request may wait.
    QueueTimeout(Duration),
    /// The whole request took longer than this, and no instance had it.
    DeadlineInQueue(Duration),
    /// The instance broke the connection after the request was sent.
    Broken,
    /// Instances died on exactly this request, so that it is not tried for this long.
    KillsInstances(Duration),
    /// The instance's answer is no HTTP.
    BadAnswer(&'static str),
    /// The instance did not begin its answer for this long.
    FirstByteTimeout(Duration),
    /// The whole request took longer than this.
    TotalTimeout(Duration),
    /// What SageMaker has words of its own for.
    Runtime(Box<RuntimeError>),
    /// The router is being stopped.
    Stopping,
    /// A fault of the router.
    Internal,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Signature(refusal)
    }
}

/// What a client's SDK should do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Advice {
    /// Nothing is said.
    None,
    /// Trying again helps, after about a second.
    RetrySoon,
    /// Trying again by itself may generate a second time: not without being told to.
    DoNotRetry,
}

struct Row {
    kind: ErrorKind,
    outcome: Outcome,
    advice: Advice,
    message: Cow<'static, str>,
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Failure {
        Failure::Runtime(Box::new(error))
    }
}

impl Failure {
    /// How the request ended, for metrics and logs.
    pub(crate) fn outcome(&self) -> Outcome {
        self.row().outcome
    }

    /// The response. `jitter` is any number: it spreads the moments at which clients come back.
    pub(crate) fn response(&self, dialect: Dialect, jitter: u64) -> Response<Bytes> {
        if let (Dialect::SageMaker, Some(refusal)) = (dialect, self.refusal()) {
            let error = ServiceError::new(refusal.status(), refusal.code(), refusal.to_string());
            return error.response(Protocol::Rest, "");
        }
        match self {
            Failure::Runtime(error) => return runtime_response(error, dialect),
            Failure::BodyTooLarge(limit) if is_sagemaker(dialect) => {
                return runtime_response(&RuntimeError::TooLarge(*limit), dialect);
            }
            _ => {}
        }
        let Row { kind, advice, message, .. } = self.row();
        let mut body = ErrorBody::new(kind, message);
        if let Failure::ModelNotFound(_) = self {
            body = body.with_param("model");
        }
        let mut response = Response::new(Bytes::from(body.to_json(dialect)));
        *response.status_mut() =
            StatusCode::from_u16(kind.status(dialect)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        advise(headers, advice, jitter);
        if let (Dialect::SageMaker, Some(name)) = (dialect, kind.sagemaker_type()) {
            headers.insert(ERROR_TYPE, HeaderValue::from_static(name));
        }
        match self {
            Failure::MethodNotAllowed(methods) => {
                headers.insert(ALLOW, HeaderValue::from_static(methods));
            }
            Failure::NoKey | Failure::UnknownKey | Failure::Signature(_) => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }

    /// The response in the form of a service of AWS's.
    pub(crate) fn service_response(&self, protocol: Protocol, request_id: &HeaderValue) -> Response<Bytes> {
        let Row { kind, message, .. } = self.row();
        let error = match self.refusal() {
            Some(refusal) => ServiceError::new(refusal.status(), refusal.code(), refusal.to_string()),
            None => {
                let (status, code) = match kind {
                    ErrorKind::Permission => (403, "AccessDeniedException"),
                    ErrorKind::BodyTooLarge => (413, "RequestEntityTooLargeException"),
                    ErrorKind::Internal => (500, "InternalFailure"),
                    ErrorKind::Unavailable => (503, "ServiceUnavailableException"),
                    kind => (kind.status(Dialect::OpenAi), "ValidationException"),
                };
                ServiceError::new(status, code, message)
            }
        };
        let request_id = request_id.to_str().unwrap_or_default();
        let mut response = error.response(protocol, request_id);
        if let Ok(id) = HeaderValue::from_str(request_id) {
            response.headers_mut().insert(SERVICE_REQUEST_ID, id);
        }
        response
    }

    /// What AWS says where a credential proves nothing.
    fn refusal(&self) -> Option<&Refusal> {
        match self {
            Failure::Signature(refusal) => Some(refusal),
            Failure::NoKey => Some(&Refusal::MissingToken),
            Failure::UnknownKey => Some(&Refusal::UnknownKey),
            _ => None,
        }
    }

    /// The table.
    fn row(&self) -> Row {
        use Advice::{DoNotRetry, RetrySoon};
        let row = |kind, outcome, advice, message: Cow<'static, str>| Row { kind, outcome, advice, message };
        let refused = |kind, message| row(kind, Outcome::Refused, Advice::None, message);
        let unauthorized =
            |message: &'static str| row(ErrorKind::Authentication, Outcome::Unauthorized, Advice::None, message.into());
        let shed = |outcome, message| row(ErrorKind::TooManyRequests, outcome, RetrySoon, message);
        let upstream = |kind, outcome, message| row(kind, outcome, DoNotRetry, message);
        match self {
            Failure::NoSuchPath => refused(
                ErrorKind::NotFound,
                "nothing is served at this path; further paths of the engines pass when allow_paths lists them".into(),
            ),
            Failure::MethodNotAllowed(methods) => refused(
                ErrorKind::MethodNotAllowed,
                format!("this path is not served by this method; allowed: {methods}").into(),
            ),
            Failure::UriTooLong(limit) => {
                refused(ErrorKind::UriTooLong, format!("path and query are longer than {limit} bytes").into())
            }
            Failure::HeadersTooLarge(limit) => refused(
                ErrorKind::HeadersTooLarge,
                format!("the headers are larger than {limit} bytes, or more than {MOST_HEADERS}").into(),
            ),
            Failure::BadTarget => refused(
                ErrorKind::InvalidRequest,
                "the target of a request is a path of ASCII characters, all others escaped; OPTIONS may ask for *".into(),
            ),
            Failure::BadHost => refused(
                ErrorKind::InvalidRequest,
                "a request of HTTP/1.1 names one host, as `host: NAME` or `host: NAME:PORT`".into(),
            ),
            Failure::BadDeadline => refused(
                ErrorKind::InvalidRequest,
                "x-isotherm-deadline-ms must be a whole number of milliseconds from 0 to 4,294,967,295".into(),
            ),
            Failure::BodyTooLarge(limit) => {
                refused(ErrorKind::BodyTooLarge, format!("the body is larger than {limit} bytes").into())
            }
            Failure::BodyTooSlow(limit) => {
                refused(ErrorKind::RequestTimeout, format!("the body did not come on for {limit:?}").into())
            }
            Failure::BodyBroken => refused(ErrorKind::InvalidRequest, "the body is badly framed".into()),
            Failure::ClientLeft => row(
                ErrorKind::InvalidRequest,
                Outcome::ClientLeft,
                Advice::None,
                "the connection ended within the body".into(),
            ),
            Failure::NoKey => unauthorized("no API key: send it as `Authorization: Bearer KEY`, or as x-api-key"),
            Failure::UnknownKey => unauthorized("unknown API key"),
            Failure::Signature(Refusal::TokenExpired) => {
                row(ErrorKind::Expired, Outcome::Unauthorized, Advice::None, Refusal::TokenExpired.to_string().into())
            }
            Failure::Signature(refusal) => {
                row(ErrorKind::Authentication, Outcome::Unauthorized, Advice::None, refusal.to_string().into())
            }
            Failure::SignedNotBearer => row(
                ErrorKind::Permission,
                Outcome::Unauthorized,
                Advice::None,
                "this path takes bearer tokens, as sagemaker-core's generate_token makes them, and no signatures"
                    .into(),
            ),
            Failure::WebPage => row(
                ErrorKind::Permission,
                Outcome::Unauthorized,
                Advice::None,
                "web pages, and whatever does not POST, may call AWS's services only with keys, and this router has none \
                 (`auth: { keys_file: … }`)"
                    .into(),
            ),
            Failure::Denied { user, action, resource } => row(
                ErrorKind::Permission,
                Outcome::Unauthorized,
                Advice::None,
                format!("User: {user} is not authorized to perform: {action} on resource: {resource}").into(),
            ),
            Failure::Excess(excess) => refused(ErrorKind::InvalidRequest, excess.to_string().into()),
            Failure::Malformed(malformed) => refused(ErrorKind::InvalidRequest, malformed.to_string().into()),
            Failure::BadTenantId => refused(
                ErrorKind::InvalidRequest,
                "x-amzn-sagemaker-prefix-aware-id must be 1 to 64 printable characters, the first one no space".into(),
            ),
            Failure::NoSuchVariant => refused(
                ErrorKind::InvalidRequest,
                "x-amzn-sagemaker-target-variant names no variant of the endpoint".into(),
            ),
            Failure::ModelNotFound(model) => refused(
                ErrorKind::ModelNotFound,
                format!("no instance serves the model {model:?}; GET /v1/models lists those that are served").into(),
            ),
            Failure::Unavailable => row(
                ErrorKind::Unavailable,
                Outcome::Unavailable,
                RetrySoon,
                "no instance can take the request now".into(),
            ),
            Failure::QueueFull => {
                shed(Outcome::QueueFull, "every instance is full, and so is the queue before them".into())
            }
            Failure::BacklogFull => {
                shed(Outcome::QueueFull, "as many asynchronous invocations wait as may wait".into())
            }
            Failure::QueueTimeout(limit) => {
                shed(Outcome::QueueTimeout, format!("every instance was full for {limit:?}").into())
            }
            Failure::DeadlineInQueue(limit) => {
                shed(Outcome::Deadline, format!("no instance had room within {limit:?}").into())
            }
            Failure::Broken => upstream(
                ErrorKind::BadGateway,
                Outcome::UpstreamError,
                "the instance broke the connection before it answered".into(),
            ),
            Failure::KillsInstances(pause) => upstream(
                ErrorKind::BadGateway,
                Outcome::UpstreamError,
                format!(
                    "several instances broke the connection on exactly this request, so it is not sent to another one; \
                     it is tried again after {} s at the earliest",
                    pause.as_secs() + 1
                )
                .into(),
            ),
            Failure::BadAnswer(what) => upstream(
                ErrorKind::BadGateway,
                Outcome::UpstreamError,
                format!("the instance's answer is no HTTP response: {what}").into(),
            ),
            Failure::FirstByteTimeout(limit) => upstream(
                ErrorKind::GatewayTimeout,
                Outcome::UpstreamTimeout,
                format!("the instance did not begin its answer within {limit:?}").into(),
            ),
            Failure::TotalTimeout(limit) => upstream(
                ErrorKind::GatewayTimeout,
                Outcome::UpstreamTimeout,
                format!("the request was not answered within {limit:?}").into(),
            ),
            Failure::Runtime(error) => refused(ErrorKind::InvalidRequest, "".into()).ended(outcome_of(error)),
            Failure::Stopping => {
                row(ErrorKind::Unavailable, Outcome::Unavailable, RetrySoon, "the router is being stopped".into())
            }
            Failure::Internal => row(
                ErrorKind::Internal,
                Outcome::InternalError,
                Advice::None,
                "the router failed on this request".into(),
            ),
        }
    }
}

impl Row {
    fn ended(self, outcome: Outcome) -> Row {
        Row { outcome, ..self }
    }
}

/// How a request ended that SageMaker has words for.
fn outcome_of(error: &RuntimeError) -> Outcome {
    match error {
        RuntimeError::Validation { .. } if *error == RuntimeError::no_capacity() => Outcome::Unavailable,
        RuntimeError::Validation { .. } | RuntimeError::TooLarge(_) => Outcome::Refused,
        RuntimeError::Model(error) => match error.fault {
            Fault::Answered { .. } => Outcome::Ok,
            Fault::TimedOut => Outcome::UpstreamTimeout,
            Fault::BodyBrokeOff { .. } | Fault::NoAnswer => Outcome::UpstreamError,
        },
    }
}

fn is_sagemaker(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::SageMaker | Dialect::SageMakerOpenAi)
}

fn runtime_response(error: &RuntimeError, dialect: Dialect) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(error.to_json(dialect)));
    *response.status_mut() = StatusCode::from_u16(error.status(dialect)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let (Dialect::SageMaker, Some(name)) = (dialect, error.name()) {
        headers.insert(ERROR_TYPE, HeaderValue::from_static(name));
    }
    if error.may_have_generated() {
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    response
}

/// The most header lines of a request.
pub(crate) const MOST_HEADERS: usize = 100;

fn advise(headers: &mut HeaderMap, advice: Advice, jitter: u64) {
    match advice {
        Advice::None => {}
        Advice::RetrySoon => {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            headers.insert(RETRY_AFTER_MS, HeaderValue::from(500 + jitter % 1_000));
        }
        Advice::DoNotRetry => {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(failure: Failure, dialect: Dialect) -> (u16, HeaderMap, String) {
        let (head, body) = failure.response(dialect, 7).into_parts();
        (head.status.as_u16(), head.headers, String::from_utf8(body.to_vec()).unwrap())
    }

    #[test]
    fn shed_and_unavailable_requests_may_come_back_soon_and_spread_out() {
        for failure in [Failure::QueueFull, Failure::Unavailable, Failure::Stopping] {
            let (status, headers, _) = response(failure.clone(), Dialect::OpenAi);
            assert!(matches!(status, 429 | 503), "{failure:?}");
            assert_eq!(
                (&headers["retry-after"], &headers["retry-after-ms"]),
                (&"1".parse().unwrap(), &"507".parse().unwrap())
            );
            assert!(!headers.contains_key("x-should-retry"));
        }
    }

    #[test]
    fn what_may_have_been_generated_is_not_to_be_asked_for_again_by_itself() {
        let limit = Duration::from_secs(600);
        for failure in [Failure::Broken, Failure::FirstByteTimeout(limit), Failure::TotalTimeout(limit)] {
            let (status, headers, _) = response(failure.clone(), Dialect::OpenAi);
            assert!(matches!(status, 502 | 504), "{failure:?}");
            assert_eq!(headers["x-should-retry"], "false");
            assert!(!headers.contains_key("retry-after"));
        }
    }

    #[test]
    fn the_body_speaks_the_callers_dialect() {
        let (status, headers, body) = response(Failure::ModelNotFound("gpt".into()), Dialect::OpenAi);
        assert_eq!((status, headers["content-type"].to_str().unwrap()), (404, "application/json"));
        assert!(body.contains(r#""code":"model_not_found""#) && body.contains(r#""param":"model""#), "{body}");
        let (_, _, body) = response(Failure::Unavailable, Dialect::Anthropic);
        assert!(body.starts_with(r#"{"error":{"#) && body.contains(r#""type":"error""#), "{body}");
        let (_, headers, body) = response(Failure::QueueFull, Dialect::SageMaker);
        assert_eq!(headers["x-amzn-errortype"], "ThrottlingException");
        assert!(body.starts_with(r#"{"Message":"#), "{body}");
    }

    #[test]
    fn a_wrong_method_and_a_missing_key_are_told_what_would_be_right() {
        let (status, headers, _) = response(Failure::MethodNotAllowed("GET, HEAD"), Dialect::OpenAi);
        assert_eq!((status, headers["allow"].to_str().unwrap()), (405, "GET, HEAD"));
        let (status, headers, _) = response(Failure::NoKey, Dialect::OpenAi);
        assert_eq!((status, headers["www-authenticate"].to_str().unwrap()), (401, "Bearer"));
    }
}
