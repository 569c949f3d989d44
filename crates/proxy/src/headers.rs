//! Which headers pass, in each direction: what belongs to one connection or to the router itself does not.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// The id of a request, which client, router and instance share.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// A request's place in a trace (W3C Trace Context).
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Anthropic's form of an API key.
pub(crate) const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// What AWS's clients send beside a signature with a temporary key.
pub(crate) const SECURITY_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
/// SageMaker's tenant id: separates the placement of equal prefixes.
pub(crate) const PREFIX_AWARE_ID: HeaderName = HeaderName::from_static("x-amzn-sagemaker-prefix-aware-id");
/// SageMaker's choice of a variant by its name.
pub(crate) const TARGET_VARIANT: HeaderName = HeaderName::from_static("x-amzn-sagemaker-target-variant");
/// The name of an error, by which SageMaker's SDKs choose the exception.
pub(crate) const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");
/// The session that a request belongs to.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("x-amzn-sagemaker-session-id");
/// The session that a container has begun.
pub(crate) const NEW_SESSION_ID: HeaderName = HeaderName::from_static("x-amzn-sagemaker-new-session-id");
/// The session that a container has ended.
pub(crate) const CLOSED_SESSION_ID: HeaderName = HeaderName::from_static("x-amzn-sagemaker-closed-session-id");
/// What client and container tell each other past SageMaker.
pub(crate) const CUSTOM_ATTRIBUTES: HeaderName = HeaderName::from_static("x-amzn-sagemaker-custom-attributes");
/// The production variant that served an invocation.
pub(crate) const INVOKED_VARIANT: HeaderName = HeaderName::from_static("x-amzn-invoked-production-variant");
/// The type of a container's response that goes out in frames.
pub(crate) const FRAMED_CONTENT_TYPE: HeaderName = HeaderName::from_static("x-amzn-sagemaker-content-type");
/// The adapter that SageMaker's containers compute a request with.
pub(crate) const ADAPTER_IDENTIFIER: HeaderName = HeaderName::from_static("x-amzn-sagemaker-adapter-identifier");
/// The id of a request as AWS's services call it.
pub(crate) const SERVICE_REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");
/// How many milliseconds after its arrival a request must have its place; later, its client has no use for the answer.
pub(crate) const DEADLINE: HeaderName = HeaderName::from_static("x-isotherm-deadline-ms");
/// Whether a client's SDK should try again by itself.
pub(crate) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// `retry-after` in milliseconds, which OpenAI's SDKs prefer.
pub(crate) const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
/// The decision headers, on responses where `expose_decisions` is on.
pub(crate) const INSTANCE: HeaderName = HeaderName::from_static("x-isotherm-instance");
/// See [`INSTANCE`].
pub(crate) const REASON: HeaderName = HeaderName::from_static("x-isotherm-reason");
/// See [`INSTANCE`].
pub(crate) const HOME: HeaderName = HeaderName::from_static("x-isotherm-home");
/// See [`INSTANCE`].
pub(crate) const KEY: HeaderName = HeaderName::from_static("x-isotherm-key");

/// The response that a client wants its request compared with, where its API has no field for that.
pub(crate) const COMPARE_WITH: HeaderName = HeaderName::from_static("x-isotherm-compare-with");
/// What has changed since then.
pub(crate) const CACHE_DIAGNOSTICS: HeaderName = HeaderName::from_static("x-isotherm-cache-diagnostics");

/// Headers that routers and engines give orders by: from a client they would override the router's choice, or send an
/// engine's connections wherever the client likes.
const INTERNAL: [&str; 5] =
    ["x-isotherm-", "x-gateway-destination-endpoint", "x-prefiller-host-port", "x-data-parallel-", "x-smg-"];

/// The longest request id that is taken over from a client, in bytes.
const LONGEST_REQUEST_ID: usize = 128;

/// The headers of a client's request that pass to the instance; those that the router writes itself (host, length,
/// request id, and where it authenticates the credentials) are left out.
pub(crate) fn for_instance(
    headers: &HeaderMap,
    credentials_pass: bool,
) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    let listed = Listed::of(headers);
    headers.iter().filter(move |(name, _)| {
        let credential = || **name == header::AUTHORIZATION || **name == API_KEY || **name == SECURITY_TOKEN;
        passes(name.as_str()) && !listed.contains(name) && (credentials_pass || !credential())
    })
}

/// Whether a header is one that may pass to an instance. Every header of every request goes through this one.
///
/// With an underscore, a name would reach engines that read headers the way CGI does as its twin with a hyphen, past
/// every check here.
fn passes(name: &str) -> bool {
    let stays = match name.as_bytes().first() {
        Some(b'c') => matches!(name, "connection" | "content-length"),
        Some(b'e') => name == "expect",
        Some(b'h') => matches!(name, "host" | "http2-settings"),
        Some(b'k' | b'p' | b't' | b'u') => belongs_to_connection(name),
        Some(b'x') => name == REQUEST_ID.as_str() || INTERNAL.iter().any(|internal| name.starts_with(internal)),
        _ => false,
    };
    !stays && !name.as_bytes().contains(&b'_')
}

/// Headers that concern one connection only (RFC 9110, section 7.6.1, and what is left of RFC 2616's list).
fn belongs_to_connection(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// Takes out of an instance's response what belongs to its connection.
pub(crate) fn clean_response(headers: &mut HeaderMap) {
    let listed = Listed::of(headers);
    let stays = |name: &&HeaderName| belongs_to_connection(name.as_str()) || listed.contains(name);
    let staying: Vec<HeaderName> = headers.keys().filter(stays).cloned().collect();
    for name in staying {
        headers.remove(name);
    }
}

/// The id of a request: the client's if it sent a sound one, else a new one.
pub(crate) fn request_id(headers: &HeaderMap, random: u128) -> HeaderValue {
    let sound = |value: &&HeaderValue| {
        (1..=LONGEST_REQUEST_ID).contains(&value.len()) && value.as_bytes().iter().all(u8::is_ascii_graphic)
    };
    match headers.get(REQUEST_ID).filter(sound) {
        Some(id) => id.clone(),
        None => hexadecimal(random),
    }
}

/// A number's 32 digits.
fn hexadecimal(number: u128) -> HeaderValue {
    let digit = |index: usize| b"0123456789abcdef"[(number >> (4 * (31 - index)) & 0xf) as usize];
    let digits: [u8; 32] = std::array::from_fn(digit);
    HeaderValue::from_bytes(&digits).unwrap_or_else(|_| HeaderValue::from_static("0"))
}

/// A header value of text that is printable ASCII; anything else in it becomes `?`.
pub(crate) fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| {
        let safe: Vec<u8> = text.bytes().map(|byte| if matches!(byte, b' '..=b'~') { byte } else { b'?' }).collect();
        HeaderValue::from_bytes(&safe).unwrap_or_else(|_| HeaderValue::from_static("?"))
    })
}

/// What a message's `connection` header lists as its connection's own.
struct Listed<'h>(Option<&'h HeaderMap>);

impl<'h> Listed<'h> {
    fn of(headers: &'h HeaderMap) -> Listed<'h> {
        Listed(headers.contains_key(header::CONNECTION).then_some(headers))
    }

    /// Never what says who asks and what the body is: a client must not strip those by listing them.
    fn contains(&self, name: &HeaderName) -> bool {
        let Some(headers) = self.0 else { return false };
        let protected = ["authorization", "content-encoding", "content-length", "content-type", "x-api-key"];
        !protected.contains(&name.as_str()) && options(headers).any(|option| option.eq_ignore_ascii_case(name.as_str()))
    }
}

fn options(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).fold(
            HeaderMap::new(),
            |mut headers, (name, value)| {
                headers.append(name, value);
                headers
            },
        )
    }

    fn passing(headers: &HeaderMap, credentials_pass: bool) -> Vec<String> {
        for_instance(headers, credentials_pass).map(|(name, _)| name.to_string()).collect()
    }

    #[test]
    fn what_belongs_to_the_connection_stays_and_the_rest_passes() {
        let headers = map(&[
            ("accept", "*/*"),
            ("connection", "keep-alive, X-Hop"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("trailer", "x"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "foo"),
            ("proxy-authorization", "secret"),
            ("host", "router"),
            ("expect", "100-continue"),
            ("content-length", "5"),
            ("content-type", "application/json"),
            ("traceparent", "00-1-2-01"),
            ("x-custom", "a"),
            ("x-custom", "b"),
        ]);
        let expected = ["accept", "content-type", "traceparent", "x-custom", "x-custom"];
        assert_eq!(passing(&headers, true), expected);
    }

    #[test]
    fn clients_give_no_internal_orders() {
        let headers = map(&[
            ("x-isotherm-instance", "a"),
            ("x-gateway-destination-endpoint", "a"),
            ("x-gateway-destination-endpoint-subset", "a"),
            ("x-prefiller-host-port", "169.254.169.254:80"),
            ("x-data-parallel-rank", "1"),
            ("x-smg-target-worker", "1"),
            ("x_request_id", "a"),
            ("x-session-id", "kept"),
        ]);
        assert_eq!(passing(&headers, true), ["x-session-id"]);
    }

    #[test]
    fn credentials_stop_where_the_router_authenticates() {
        let headers = map(&[("authorization", "Bearer a"), ("x-api-key", "a"), ("accept", "*/*")]);
        assert_eq!(passing(&headers, true), ["authorization", "x-api-key", "accept"]);
        assert_eq!(passing(&headers, false), ["accept"]);
    }

    #[test]
    fn listing_them_does_not_strip_credentials_or_the_bodys_type() {
        let headers = map(&[
            ("connection", "authorization, content-type, x-api-key"),
            ("authorization", "Bearer a"),
            ("x-api-key", "a"),
            ("content-type", "application/json"),
        ]);
        assert_eq!(passing(&headers, true), ["authorization", "x-api-key", "content-type"]);
    }

    #[test]
    fn responses_keep_all_but_their_connections_headers() {
        let mut headers = map(&[
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("content-type", "text/event-stream"),
            ("set-cookie", "a"),
            ("set-cookie", "b"),
        ]);
        clean_response(&mut headers);
        let mut left: Vec<_> = headers.iter().map(|(name, _)| name.as_str()).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-type", "set-cookie", "set-cookie"]);
    }

    #[test]
    fn a_sound_request_id_is_kept_and_any_other_replaced() {
        let id = |value: &'static str| request_id(&map(&[("x-request-id", value)]), 7);
        assert_eq!(id("req-1"), "req-1");
        for value in ["", "two words", "tab\there"] {
            assert_eq!(id(value), "00000000000000000000000000000007", "{value:?}");
        }
        assert_eq!(request_id(&HeaderMap::new(), 7), "00000000000000000000000000000007");
    }
}
