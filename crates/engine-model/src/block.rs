//! Blocks of 16 tokens and the chained hashes that name them.

use std::sync::Arc;

use crate::tokenizer::Token;

/// Tokens in one block of KV cache (vLLM's default block size).
pub const BLOCK_TOKENS: u32 = 16;

/// Names a full block: its tokens and everything before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockHash(pub u64);

/// What, besides the tokens, must be equal for two requests to share blocks. It enters the hash of the first block and,
/// through the chain, all others (vLLM's extra keys).
#[derive(Debug, Clone, Copy, Default)]
pub struct CacheScope<'a> {
    /// Name of the base model.
    pub model: &'a str,
    /// Name of the LoRA adapter.
    pub adapter: Option<&'a str>,
    /// The request's `cache_salt`.
    pub cache_salt: Option<&'a str>,
}

/// The hashes of a sequence's full blocks, in order. Cloning it is cheap.
#[derive(Debug, Clone, Default)]
pub struct BlockChain(Arc<[BlockHash]>);

impl BlockChain {
    /// The chain of a whole sequence of tokens.
    pub fn from_tokens(scope: &CacheScope<'_>, tokens: &[Token]) -> Self {
        let mut builder = ChainBuilder::new(scope);
        builder.push_tokens(tokens);
        builder.build()
    }

    /// The hashes, first block first.
    pub fn hashes(&self) -> &[BlockHash] {
        &self.0
    }
}

/// Builds a chain piece by piece. A clone continues independently, so the chain of a shared document is computed once.
#[derive(Debug, Clone)]
pub struct ChainBuilder {
    hashes: Vec<BlockHash>,
}

impl ChainBuilder {
    /// An empty sequence in a scope.
    pub fn new(_scope: &CacheScope<'_>) -> Self {
        todo!()
    }

    /// Appends tokens.
    pub fn push_tokens(&mut self, _tokens: &[Token]) {
        todo!()
    }

    /// Appends `count` tokens that nobody looks at: those of the text number `content`, from its beginning. For
    /// simulations that know lengths and identities but no text.
    pub fn push_content(&mut self, _content: u64, _count: u32) {
        todo!()
    }

    /// The chain of what was pushed so far.
    pub fn build(&self) -> BlockChain {
        BlockChain(self.hashes.as_slice().into())
    }
}
