//! The paths of SageMaker's runtime.

use http::Method;
use isotherm_wire::error::Dialect;
use isotherm_wire::sagemaker::Operation;

use super::{NoRoute, READ, Route, only};

/// What is asked of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuntimeApi {
    /// An answer that comes as its container sends it.
    Invocations,
    /// One that comes in frames.
    ResponseStream,
    /// One that is written to a place.
    Async,
    /// OpenAI's chat completions.
    OpenAi {
        /// The inference component that is called.
        component: Option<String>,
    },
    /// The models that the endpoint's instances list.
    OpenAiModels {
        /// The inference component that is asked about.
        component: Option<String>,
    },
}

impl RuntimeApi {
    /// The operation of the native API; `None` on the OpenAI-compatible path.
    pub(crate) fn operation(&self) -> Option<Operation> {
        match self {
            RuntimeApi::Invocations => Some(Operation::InvokeEndpoint),
            RuntimeApi::ResponseStream => Some(Operation::InvokeEndpointWithResponseStream),
            RuntimeApi::Async => Some(Operation::InvokeEndpointAsync),
            RuntimeApi::OpenAi { .. } | RuntimeApi::OpenAiModels { .. } => None,
        }
    }

    /// The path at the container.
    pub(crate) fn container_path(&self) -> &'static str {
        match self {
            RuntimeApi::Invocations | RuntimeApi::ResponseStream | RuntimeApi::Async => "/invocations",
            RuntimeApi::OpenAi { .. } => "/v1/chat/completions",
            RuntimeApi::OpenAiModels { .. } => "/v1/models",
        }
    }

    /// The name in metrics and logs.
    pub(super) fn label(&self) -> &'static str {
        match self {
            RuntimeApi::Invocations => "/endpoints/{name}/invocations",
            RuntimeApi::ResponseStream => "/endpoints/{name}/invocations-response-stream",
            RuntimeApi::Async => "/endpoints/{name}/async-invocations",
            RuntimeApi::OpenAi { .. } => "/endpoints/{name}/openai/v1/chat/completions",
            RuntimeApi::OpenAiModels { .. } => "/endpoints/{name}/openai/v1/models",
        }
    }
}

/// Where all of them are.
const ENDPOINTS: &str = "/endpoints/";

/// The route of a path of the runtime; `None` when it is none.
pub(super) fn find(method: &Method, path: &str) -> Option<Result<Route, NoRoute>> {
    let (endpoint, rest) = path.strip_prefix(ENDPOINTS)?.split_once('/')?;
    let api = match rest {
        "invocations" => RuntimeApi::Invocations,
        "invocations-response-stream" => RuntimeApi::ResponseStream,
        "async-invocations" => RuntimeApi::Async,
        _ => openai(rest)?,
    };
    if !is_segment(endpoint) {
        return None;
    }
    let reads = matches!(api, RuntimeApi::OpenAiModels { .. });
    let route = Route::Runtime { endpoint: endpoint.to_owned(), api };
    Some(if reads { only(method, &READ, "GET, HEAD", route) } else { only(method, &[Method::POST], "POST", route) })
}

fn openai(rest: &str) -> Option<RuntimeApi> {
    let (component, rest) = match rest.strip_prefix("inference-components/") {
        Some(rest) => {
            let (component, rest) = rest.split_once('/')?;
            (Some(component).filter(|component| is_segment(component))?, rest)
        }
        None => ("", rest),
    };
    let component = Some(component.to_owned()).filter(|component| !component.is_empty());
    match rest {
        "openai/v1/chat/completions" => Some(RuntimeApi::OpenAi { component }),
        "openai/v1/models" => Some(RuntimeApi::OpenAiModels { component }),
        _ => None,
    }
}

/// Whether it may be a name: looked up here, it goes to no engine.
fn is_segment(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// The form in which callers at these paths expect errors, also where nothing is served; `None` elsewhere.
pub(super) fn dialect_of(path: &str) -> Option<Dialect> {
    let rest = path.strip_prefix(ENDPOINTS)?;
    Some(if rest.contains("/openai/") { Dialect::SageMakerOpenAi } else { Dialect::SageMaker })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(endpoint: &str, api: RuntimeApi) -> Option<Result<Route, NoRoute>> {
        Some(Ok(Route::Runtime { endpoint: endpoint.into(), api }))
    }

    #[test]
    fn every_path_of_the_runtime_is_found() {
        let find = |path| find(&Method::POST, path);
        assert_eq!(find("/endpoints/my-ep/invocations"), route("my-ep", RuntimeApi::Invocations));
        assert_eq!(find("/endpoints/a/invocations-response-stream"), route("a", RuntimeApi::ResponseStream));
        assert_eq!(find("/endpoints/a/async-invocations"), route("a", RuntimeApi::Async));
        let openai = |component: Option<&str>| RuntimeApi::OpenAi { component: component.map(str::to_owned) };
        assert_eq!(find("/endpoints/a/openai/v1/chat/completions"), route("a", openai(None)));
        let path = "/endpoints/a/inference-components/b/openai/v1/chat/completions";
        assert_eq!(find(path), route("a", openai(Some("b"))));
        let models = super::find(&Method::GET, "/endpoints/a/inference-components/b/openai/v1/models");
        assert_eq!(models, route("a", RuntimeApi::OpenAiModels { component: Some("b".into()) }));
    }

    #[test]
    fn other_spellings_are_no_paths() {
        for path in [
            "/endpoints",
            "/endpoints/",
            "/endpoints//invocations",
            "/endpoints/a",
            "/endpoints/a/",
            "/endpoints/a/invocations/",
            "/endpoints/a/b/invocations",
            "/endpoints/a%2Fb/invocations",
            "/endpoints/a/openai/v1/completions",
            "/endpoints/a/openai/v1/../v1/chat/completions",
            "/endpoints/a/inference-components//openai/v1/chat/completions",
            "/endpoints/a/inference-components/b/invocations",
            "/Endpoints/a/invocations",
        ] {
            assert_eq!(find(&Method::POST, path), None, "{path}");
        }
        assert_eq!(find(&Method::GET, "/endpoints/a/invocations"), Some(Err(NoRoute::Method("POST"))));
        let models = find(&Method::POST, "/endpoints/a/openai/v1/models");
        assert_eq!(models, Some(Err(NoRoute::Method("GET, HEAD"))));
    }

    #[test]
    fn the_dialect_follows_the_path() {
        assert_eq!(dialect_of("/endpoints/a/invocations"), Some(Dialect::SageMaker));
        assert_eq!(dialect_of("/endpoints/a/nothing"), Some(Dialect::SageMaker));
        assert_eq!(dialect_of("/endpoints/a/openai/v1/responses"), Some(Dialect::SageMakerOpenAi));
        assert_eq!(dialect_of("/v1/models"), None);
    }
}
