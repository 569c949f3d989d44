//! The allow-list: which paths pass, and what each of them is. Everything else is 404.
//!
//! Paths are compared as they came, byte for byte. A doubled slash, an escape or another case is another path, so no
//! spelling slips past the list and reaches an engine as one that the list does not hold.

mod runtime;

use http::Method;
use http::header::AUTHORIZATION;
use http::request::Parts;
use isotherm_config::AllowedPath;
use isotherm_wire::api::Api;
use isotherm_wire::aws::Protocol;
use isotherm_wire::error::Dialect;

pub(crate) use self::runtime::RuntimeApi;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// One of the APIs whose requests carry a prompt.
    Prompt(Api),
    /// SageMaker's runtime.
    Runtime {
        /// The endpoint's name, as it stands in the path.
        endpoint: String,
        /// What is asked of it.
        api: RuntimeApi,
    },
    /// A response that an instance has stored.
    StoredResponse {
        /// Its id.
        id: String,
    },
    /// A path of `allow_paths`.
    Extra,
    /// All models.
    Models,
    /// One model.
    Model {
        /// Its id, without escapes.
        id: String,
    },
    /// Whether an instance is eligible (SageMaker's container form).
    Ping,
    /// Whether the process is up.
    Health,
    /// What is served at all, which nobody needs but who asks whether the server speaks HTTP (RFC 9110, section 9.3.7).
    Server,
    /// Another service of AWS's, or SageMaker's control plane, in this protocol.
    Aws(Protocol),
}

/// Why a request has no route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// Nothing is served at this path.
    Path,
    /// The path is served, by these methods.
    Method(&'static str),
}

impl Route {
    /// The route of a request to a service of AWS's; `None` for every other request.
    ///
    /// Those that the router speaks have paths of their own. Whatever else is signed is a client of AWS's, too, which
    /// should be told in its own words that its service is not here.
    pub(crate) fn find_aws(head: &Parts) -> Option<Route> {
        let path = head.uri.path();
        let own = match path.strip_prefix("/api/v1/") {
            Some(query) => is_metrics_query(query),
            // A query protocol's GET has its operation there; what only looks whether somebody is at home has nothing.
            None if path == "/" => head.method == Method::POST || head.uri.query().is_some(),
            None => path.starts_with("/service/"),
        };
        let signed = || head.headers.get(AUTHORIZATION).is_some_and(|value| value.as_bytes().starts_with(b"AWS4-"));
        (own || signed()).then(|| Route::Aws(Protocol::of(head)))
    }

    /// The route of a method and a path (without its query).
    pub(crate) fn find(method: &Method, path: &str, extra: &[AllowedPath]) -> Result<Route, NoRoute> {
        if let Some(api) = Api::from_path(path) {
            return only(method, &[Method::POST], "POST", Route::Prompt(api));
        }
        if let Some(found) = runtime::find(method, path) {
            return found;
        }
        match path {
            "/v1/models" => return only(method, &READ, "GET, HEAD", Route::Models),
            "/ping" => return only(method, &READ, "GET, HEAD", Route::Ping),
            "/health" => return only(method, &READ, "GET, HEAD", Route::Health),
            "*" if *method == Method::OPTIONS => return Ok(Route::Server),
            _ => {}
        }
        if let Some(id) = path.strip_prefix("/v1/models/").and_then(model_id) {
            return only(method, &READ, "GET, HEAD", Route::Model { id });
        }
        if let Some((id, cancel)) = path.strip_prefix("/v1/responses/").and_then(response_id) {
            let route = Route::StoredResponse { id: id.to_owned() };
            return match cancel {
                true => only(method, &[Method::POST], "POST", route),
                false => only(method, &[Method::GET, Method::DELETE], "GET, DELETE", route),
            };
        }
        let dotted = || path.split('/').any(|segment| matches!(segment, "." | ".."));
        let plain = path.bytes().all(|byte| byte != b'%' && byte != b'\\') && !path.contains("//") && !dotted();
        if plain && extra.iter().any(|allowed| allowed.matches(path)) {
            return only(method, &EXTRA, "GET, POST, PUT, PATCH, DELETE", Route::Extra);
        }
        Err(NoRoute::Path)
    }

    /// The name in metrics and logs: one of a fixed few.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Route::Prompt(api) => api.path(),
            Route::Runtime { api, .. } => api.label(),
            Route::StoredResponse { .. } => "/v1/responses/{id}",
            Route::Extra => "allow_paths",
            Route::Models => "/v1/models",
            Route::Model { .. } => "/v1/models/{id}",
            Route::Ping => "/ping",
            Route::Health => "/health",
            Route::Server => "*",
            Route::Aws(_) => "aws",
        }
    }

    /// Whether it tells no more than whether the router is well, and so needs no credential.
    pub(crate) fn is_health(&self) -> bool {
        matches!(self, Route::Ping | Route::Health)
    }
}

/// Whether a path below `/api/v1/` is one of CloudWatch's, which are those of Prometheus.
fn is_metrics_query(path: &str) -> bool {
    matches!(path, "query" | "query_range" | "series" | "labels") || path.starts_with("label/")
}

/// The form in which a caller at this path expects errors, also where nothing is served.
pub(crate) fn dialect_of(path: &str) -> Dialect {
    match Api::from_path(path) {
        Some(api) => api.dialect(),
        None if path.starts_with("/v1/messages/") => Dialect::Anthropic,
        None => runtime::dialect_of(path).unwrap_or(Dialect::OpenAi),
    }
}

const READ: [Method; 2] = [Method::GET, Method::HEAD];
const EXTRA: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

fn only(method: &Method, allowed: &[Method], names: &'static str, route: Route) -> Result<Route, NoRoute> {
    if allowed.contains(method) { Ok(route) } else { Err(NoRoute::Method(names)) }
}

/// The id of a stored response, and whether its generation is to be cancelled. Nothing that an engine could read as
/// further segments passes as an id.
fn response_id(rest: &str) -> Option<(&str, bool)> {
    let (id, cancel) = match rest.strip_suffix("/cancel") {
        Some(id) => (id, true),
        None => (rest, false),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (!id.is_empty() && id.bytes().all(plain)).then_some((id, cancel))
}

/// The id of a model, whose slashes clients send escaped or as they are. It is looked up here and goes to no engine.
fn model_id(rest: &str) -> Option<String> {
    let mut id = Vec::with_capacity(rest.len());
    let mut bytes = rest.bytes();
    while let Some(byte) = bytes.next() {
        let decoded = match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        };
        id.push(decoded);
    }
    String::from_utf8(id).ok().filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(method: &str, path: &str) -> Result<Route, NoRoute> {
        let extra = ["/tokenize".parse().unwrap(), "/v1/audio/*".parse().unwrap()];
        Route::find(&method.parse().unwrap(), path, &extra)
    }

    #[test]
    fn what_the_surface_lists_is_found() {
        for api in Api::ALL {
            assert_eq!(find("POST", api.path()), Ok(Route::Prompt(api)));
        }
        let stored = Ok(Route::StoredResponse { id: "resp_a-1".into() });
        for (method, path) in [
            ("GET", "/v1/responses/resp_a-1"),
            ("DELETE", "/v1/responses/resp_a-1"),
            ("POST", "/v1/responses/resp_a-1/cancel"),
        ] {
            assert_eq!(find(method, path), stored, "{method} {path}");
        }
        assert_eq!(find("GET", "/v1/models"), Ok(Route::Models));
        assert_eq!(find("GET", "/v1/models/meta%2Fllama%2F3"), Ok(Route::Model { id: "meta/llama/3".into() }));
        assert_eq!(find("GET", "/v1/models/meta/llama/3"), Ok(Route::Model { id: "meta/llama/3".into() }));
        assert_eq!(find("HEAD", "/health"), Ok(Route::Health));
        assert_eq!(find("GET", "/ping"), Ok(Route::Ping));
        assert_eq!(find("OPTIONS", "*"), Ok(Route::Server));
        assert_eq!(find("POST", "/tokenize"), Ok(Route::Extra));
        assert_eq!(find("POST", "/v1/audio/speech"), Ok(Route::Extra));
    }

    #[test]
    fn the_root_is_awss_only_where_something_is_asked_of_it() {
        let finds = |method: &str, path: &str| {
            let request = http::Request::builder().method(method).uri(path).body(()).unwrap();
            Route::find_aws(&request.into_parts().0).is_some()
        };
        assert!(finds("POST", "/") && finds("GET", "/?Action=GetCallerIdentity"));
        assert!(!finds("GET", "/") && !finds("HEAD", "/"));
    }

    #[test]
    fn no_spelling_slips_past_the_list() {
        for path in [
            "/",
            "*",
            "/metrics",
            "/sleep",
            "/v1/load_lora_adapter",
            "//v1/chat/completions",
            "/v1//chat/completions",
            "/v1/chat/completions/",
            "/V1/chat/completions",
            "/v1/chat%2Fcompletions",
            "/v1/chat/completions/../../../sleep",
            "/v1/chat/completions;/sleep",
            "/v1/responses/",
            "/v1/responses/a/b",
            "/v1/responses/..",
            "/v1/responses/%2e%2e",
            "/v1/responses/a%2Fcancel",
            "/v1/responses/a/cancel/cancel",
            "/v1/models/",
            "/v1/models/%zz",
            "/v1/models/%ff",
            "/tokenize/",
            "/Tokenize",
            "/v1/audio/../sleep",
            "/v1/audio/%2e%2e/sleep",
            "/v1/audio/..\\sleep",
            "/v1/audio//sleep",
            "/v1/audio/./x",
        ] {
            assert_eq!(find("POST", path), Err(NoRoute::Path), "{path}");
        }
    }

    #[test]
    fn a_wrong_method_is_told_the_right_ones() {
        assert_eq!(find("GET", "/v1/chat/completions"), Err(NoRoute::Method("POST")));
        assert_eq!(find("POST", "/v1/models"), Err(NoRoute::Method("GET, HEAD")));
        assert_eq!(find("PUT", "/v1/responses/a"), Err(NoRoute::Method("GET, DELETE")));
        assert_eq!(find("GET", "/v1/responses/a/cancel"), Err(NoRoute::Method("POST")));
        assert_eq!(find("TRACE", "/tokenize"), Err(NoRoute::Method("GET, POST, PUT, PATCH, DELETE")));
    }

    #[test]
    fn errors_come_in_the_callers_dialect_even_off_the_list() {
        assert_eq!(dialect_of("/v1/messages"), Dialect::Anthropic);
        assert_eq!(dialect_of("/v1/messages/batches"), Dialect::Anthropic);
        assert_eq!(dialect_of("/invocations"), Dialect::SageMaker);
        assert_eq!(dialect_of("/nothing"), Dialect::OpenAi);
    }
}
