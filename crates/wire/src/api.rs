//! Which API a request speaks, told by its path.

use crate::error::Dialect;

/// An API whose requests carry a prompt and are routed by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI chat completions.
    ChatCompletions,
    /// OpenAI (text) completions.
    Completions,
    /// OpenAI responses.
    Responses,
    /// OpenAI embeddings.
    Embeddings,
    /// Anthropic messages.
    Messages,
    /// Anthropic messages, counting tokens only.
    CountTokens,
    /// Jina's and Cohere's rerank, as vLLM serves it.
    Rerank,
    /// vLLM's score.
    Score,
    /// SageMaker's container form: the body's bytes are the prompt, whatever they hold.
    Invocations,
}

impl Api {
    /// Every API.
    pub const ALL: [Api; 9] = [
        Api::ChatCompletions,
        Api::Completions,
        Api::Responses,
        Api::Embeddings,
        Api::Messages,
        Api::CountTokens,
        Api::Rerank,
        Api::Score,
        Api::Invocations,
    ];

    /// The API that `POST path` speaks; `None` for every other path. `path` comes without its query and is compared as
    /// it is: a different case, a doubled or a trailing slash is another path, so that no spelling slips past an
    /// allow-list.
    pub fn from_path(path: &str) -> Option<Api> {
        Some(match path {
            "/v1/chat/completions" => Api::ChatCompletions,
            "/v1/completions" => Api::Completions,
            "/v1/responses" => Api::Responses,
            "/v1/embeddings" => Api::Embeddings,
            "/v1/messages" => Api::Messages,
            "/v1/messages/count_tokens" => Api::CountTokens,
            "/v1/rerank" | "/rerank" | "/v2/rerank" => Api::Rerank,
            "/v1/score" => Api::Score,
            "/invocations" => Api::Invocations,
            _ => return None,
        })
    }

    /// The path under which this API is best known. One of a fixed few, so it also serves as a metric's label.
    pub fn path(self) -> &'static str {
        match self {
            Api::ChatCompletions => "/v1/chat/completions",
            Api::Completions => "/v1/completions",
            Api::Responses => "/v1/responses",
            Api::Embeddings => "/v1/embeddings",
            Api::Messages => "/v1/messages",
            Api::CountTokens => "/v1/messages/count_tokens",
            Api::Rerank => "/v1/rerank",
            Api::Score => "/v1/score",
            Api::Invocations => "/invocations",
        }
    }

    /// The form in which this API's clients expect errors.
    pub fn dialect(self) -> Dialect {
        match self {
            Api::Messages | Api::CountTokens => Dialect::Anthropic,
            Api::Invocations => Dialect::SageMaker,
            Api::ChatCompletions | Api::Completions | Api::Responses | Api::Embeddings | Api::Rerank | Api::Score => {
                Dialect::OpenAi
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_api_is_found_by_its_own_path() {
        for api in Api::ALL {
            assert_eq!(Api::from_path(api.path()), Some(api));
        }
    }

    #[test]
    fn rerank_has_three_paths() {
        for path in ["/rerank", "/v1/rerank", "/v2/rerank"] {
            assert_eq!(Api::from_path(path), Some(Api::Rerank), "{path}");
        }
    }

    #[test]
    fn other_spellings_are_other_paths() {
        for path in
            ["", "/", "/v1", "/v1/chat/completions/", "//v1/completions", "/V1/messages", "/v1/models", "/pause"]
        {
            assert_eq!(Api::from_path(path), None, "{path}");
        }
    }

    #[test]
    fn errors_follow_the_api() {
        assert_eq!(Api::Messages.dialect(), Dialect::Anthropic);
        assert_eq!(Api::CountTokens.dialect(), Dialect::Anthropic);
        assert_eq!(Api::Invocations.dialect(), Dialect::SageMaker);
        assert_eq!(Api::Rerank.dialect(), Dialect::OpenAi);
    }
}
