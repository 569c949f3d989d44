//! What a request is to the engine: a chain of blocks and two lengths.

use thiserror::Error;

use crate::block::{BlockChain, CacheScope, ChainBuilder};
use crate::tokenizer::Token;

/// Names a request towards its driver. The driver chooses it; no two requests in the engine may share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// A request as the engine's scheduler sees it: no text, only what its blocks hash to and how long it is.
///
/// How many tokens it generates, and which, is decided before it starts. That keeps the model deterministic, and lets
/// the blocks of an answer be found again when the answer comes back as part of the next turn's prompt.
#[derive(Debug, Clone)]
pub struct EngineRequest {
    /// The driver's name for it.
    pub id: RequestId,
    /// Hashes of the full blocks of prompt and output, in order, as one sequence. It may be shorter than the
    /// sequence: the blocks behind its end are private to this request and are never found by another one.
    pub chain: BlockChain,
    /// Length of the prompt in tokens, at least 1.
    pub prompt_tokens: u32,
    /// How many tokens it generates. 0 is a request that only reads its prompt (an embedding).
    pub output_tokens: u32,
}

impl EngineRequest {
    /// A request whose prompt and output are known token by token.
    pub fn from_tokens(id: RequestId, scope: &CacheScope<'_>, prompt: &[Token], output: &[Token]) -> Self {
        let mut chain = ChainBuilder::new(scope);
        chain.push_tokens(prompt);
        chain.push_tokens(output);
        let length = |tokens: &[Token]| u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        Self { id, chain: chain.build(), prompt_tokens: length(prompt), output_tokens: length(output) }
    }
}

/// Why the engine does not take a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// The prompt has no token, so there is nothing to compute a next token from.
    #[error("request {}: the prompt is empty; it needs at least 1 token", id.0)]
    EmptyPrompt {
        /// The refused request.
        id: RequestId,
    },
    /// Prompt and output together need more blocks than the whole cache has; even alone it could never finish.
    #[error(
        "request {}: prompt and output need {needed_tokens} tokens of KV cache, \
         the engine has {capacity_tokens}; shorten the prompt or ask for fewer output tokens", id.0
    )]
    NeverFits {
        /// The refused request.
        id: RequestId,
        /// Tokens of KV cache that it would hold at its end, in whole blocks.
        needed_tokens: u64,
        /// Tokens of KV cache that the engine has.
        capacity_tokens: u64,
    },
    /// A request of this name is in the engine already.
    #[error("request {}: a request with this id is already in the engine; ids must be unique among live requests", id.0)]
    DuplicateId {
        /// The refused request.
        id: RequestId,
    },
}
