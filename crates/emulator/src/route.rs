//! Which handler a method and a path lead to.

use http::Method;

use crate::failure::{Dialect, Failure};

/// The emulator's surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    Health,
    Version,
    Metrics,
    Models,
    Model(&'a str),
    GetResponse(&'a str),
    DeleteResponse(&'a str),
    CancelResponse(&'a str),
    Tokenize,
    LoadAdapter,
    UnloadAdapter,
    CountTokens,
    Generate(Api),
    ShowFaults,
    SetFaults,
    ClearFaults,
    ShowRequests,
    ClearRequests,
}

/// APIs that put requests into the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Completions,
    Responses,
    Messages,
    Embeddings,
    Rerank,
    Score,
    Invocations,
}

impl<'a> Route<'a> {
    pub(crate) fn parse(method: &Method, path: &'a str) -> Result<Self, Failure> {
        let (get, post, delete) = (method == Method::GET, method == Method::POST, method == Method::DELETE);
        let route = match path {
            "/health" if get => Route::Health,
            "/ping" if get || post => Route::Health,
            "/version" if get => Route::Version,
            "/metrics" if get => Route::Metrics,
            "/v1/models" if get => Route::Models,
            "/tokenize" if post => Route::Tokenize,
            "/v1/load_lora_adapter" if post => Route::LoadAdapter,
            "/v1/unload_lora_adapter" if post => Route::UnloadAdapter,
            "/v1/chat/completions" if post => Route::Generate(Api::Chat),
            "/v1/completions" if post => Route::Generate(Api::Completions),
            "/v1/responses" if post => Route::Generate(Api::Responses),
            "/v1/messages" if post => Route::Generate(Api::Messages),
            "/v1/messages/count_tokens" if post => Route::CountTokens,
            "/v1/embeddings" if post => Route::Generate(Api::Embeddings),
            "/rerank" | "/v1/rerank" | "/v2/rerank" if post => Route::Generate(Api::Rerank),
            "/v1/score" | "/score" if post => Route::Generate(Api::Score),
            "/invocations" if post => Route::Generate(Api::Invocations),
            "/emulator/faults" if get => Route::ShowFaults,
            "/emulator/faults" if post => Route::SetFaults,
            "/emulator/faults" if delete => Route::ClearFaults,
            "/emulator/requests" if get => Route::ShowRequests,
            "/emulator/requests" if delete => Route::ClearRequests,
            "/health"
            | "/ping"
            | "/version"
            | "/metrics"
            | "/v1/models"
            | "/tokenize"
            | "/v1/load_lora_adapter"
            | "/v1/unload_lora_adapter"
            | "/v1/chat/completions"
            | "/v1/completions"
            | "/v1/responses"
            | "/v1/messages"
            | "/v1/messages/count_tokens"
            | "/v1/embeddings"
            | "/rerank"
            | "/v1/rerank"
            | "/v2/rerank"
            | "/v1/score"
            | "/score"
            | "/invocations"
            | "/emulator/faults"
            | "/emulator/requests" => return Err(Failure::WrongMethod),
            _ => return Self::parse_with_id(get, post, delete, path),
        };
        Ok(route)
    }

    fn parse_with_id(get: bool, post: bool, delete: bool, path: &'a str) -> Result<Self, Failure> {
        if let Some(name) = path.strip_prefix("/v1/models/").filter(|name| !name.is_empty()) {
            return if get { Ok(Route::Model(name)) } else { Err(Failure::WrongMethod) };
        }
        let Some(rest) = path.strip_prefix("/v1/responses/") else { return Err(Failure::UnknownPath) };
        match rest.split_once('/') {
            Some((id, "cancel")) if post => Ok(Route::CancelResponse(id)),
            Some((_, "cancel")) => Err(Failure::WrongMethod),
            Some(_) => Err(Failure::UnknownPath),
            None if rest.is_empty() => Err(Failure::UnknownPath),
            None if get => Ok(Route::GetResponse(rest)),
            None if delete => Ok(Route::DeleteResponse(rest)),
            None => Err(Failure::WrongMethod),
        }
    }

    /// Whether the request appears in `GET /emulator/requests`: probes, scrapes and tests' own questions do not.
    pub(crate) fn is_observed(&self) -> bool {
        !matches!(
            self,
            Route::Health
                | Route::Metrics
                | Route::ShowFaults
                | Route::SetFaults
                | Route::ClearFaults
                | Route::ShowRequests
                | Route::ClearRequests
        )
    }
}

/// Whose error form a path calls for.
pub(crate) fn dialect(path: &str) -> Dialect {
    if path.starts_with("/v1/messages") { Dialect::Anthropic } else { Dialect::OpenAi }
}

/// vLLM's `--api-key` guards these paths only (vLLM, docs/usage/security.md).
pub(crate) fn needs_api_key(path: &str) -> bool {
    path.starts_with("/v1") || path.starts_with("/v2") || path.starts_with("/inference")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_their_routes() {
        for (method, path, route) in [
            (Method::GET, "/ping", Route::Health),
            (Method::POST, "/v1/chat/completions", Route::Generate(Api::Chat)),
            (Method::GET, "/v1/models/org/name", Route::Model("org/name")),
            (Method::GET, "/v1/responses/resp_1", Route::GetResponse("resp_1")),
            (Method::DELETE, "/v1/responses/resp_1", Route::DeleteResponse("resp_1")),
            (Method::POST, "/v1/responses/resp_1/cancel", Route::CancelResponse("resp_1")),
        ] {
            assert_eq!(Route::parse(&method, path), Ok(route));
        }
    }

    #[test]
    fn a_known_path_with_another_method_is_told_from_an_unknown_one() {
        for path in ["/health", "/v1/responses/resp_1/cancel", "/v1/models"] {
            assert_eq!(Route::parse(&Method::PUT, path), Err(Failure::WrongMethod));
        }
        for path in ["/", "/v1", "/v1/responses/", "/v1/responses/a/b", "/pause", "/v1/models/"] {
            assert_eq!(Route::parse(&Method::GET, path), Err(Failure::UnknownPath));
        }
    }

    #[test]
    fn the_key_guards_what_it_guards_in_vllm() {
        assert!(needs_api_key("/v1/models") && needs_api_key("/v2/rerank"));
        assert!(!needs_api_key("/invocations") && !needs_api_key("/health"));
    }
}
