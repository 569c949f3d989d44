//! Blocks of 16 tokens and the chained hashes that name them.

use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::tokenizer::Token;

/// Tokens in one block of KV cache (vLLM's default block size).
pub const BLOCK_TOKENS: u32 = 16;

const BLOCK_BYTES: usize = BLOCK_TOKENS as usize * size_of::<Token>();

/// Names a full block: its tokens and everything before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockHash(pub u64);

/// What, besides the tokens, must be equal for two requests to share blocks. It enters the hash of the first block and,
/// through the chain, all others (vLLM's extra keys; there the adapter is in every block, which comes to the same).
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
    /// The hashes, first block first.
    pub fn hashes(&self) -> &[BlockHash] {
        &self.0
    }
}

/// Builds a chain piece by piece. A clone continues on its own, so the chain of a shared document is computed once.
#[derive(Debug, Clone)]
pub struct ChainBuilder {
    /// Hash of the block before the one being filled; of the scope at the start.
    parent: u64,
    hashes: Vec<BlockHash>,
    /// The tokens of the block being filled, little-endian.
    partial: [u8; BLOCK_BYTES],
    filled: usize,
}

impl ChainBuilder {
    /// An empty sequence in a scope.
    pub fn new(scope: &CacheScope<'_>) -> Self {
        Self { parent: scope.hash(), hashes: Vec::new(), partial: [0; BLOCK_BYTES], filled: 0 }
    }

    /// Appends tokens.
    pub fn push_tokens(&mut self, tokens: &[Token]) {
        self.hashes.reserve(tokens.len() / BLOCK_TOKENS as usize + 1);
        for &token in tokens {
            self.push(token);
        }
    }

    /// Appends `count` tokens that nobody looks at: those of the text number `content`, from its beginning. For
    /// simulations that know lengths and identities but no text.
    pub fn push_content(&mut self, content: u64, count: u32) {
        self.hashes.reserve((count / BLOCK_TOKENS) as usize + 1);
        for position in 0..u64::from(count) {
            self.push(content_token(content, position));
        }
    }

    /// An empty builder whose pushes go on where this one ends: it gets only the blocks that they fill.
    pub fn continuation(&self) -> ChainBuilder {
        Self { hashes: Vec::new(), ..*self }
    }

    /// Appends what was pushed to a [`continuation`](Self::continuation) of this builder, which must end where it did
    /// then. So the blocks of a part that stands in many prompts behind the same beginning are computed once.
    pub fn append(&mut self, continuation: &ChainBuilder) {
        self.hashes.extend_from_slice(&continuation.hashes);
        (self.parent, self.partial, self.filled) = (continuation.parent, continuation.partial, continuation.filled);
    }

    /// Tokens pushed so far.
    pub fn tokens(&self) -> usize {
        self.hashes.len() * BLOCK_TOKENS as usize + self.filled / size_of::<Token>()
    }

    /// The chain of what was pushed so far. Tokens behind the last full block are in no hash.
    pub fn build(&self) -> BlockChain {
        BlockChain(self.hashes.as_slice().into())
    }

    fn push(&mut self, token: Token) {
        let end = self.filled + size_of::<Token>();
        self.partial[self.filled..end].copy_from_slice(&token.to_le_bytes());
        self.filled = end;
        if end == BLOCK_BYTES {
            self.parent = xxh3_64_with_seed(&self.partial, self.parent);
            self.hashes.push(BlockHash(self.parent));
            self.filled = 0;
        }
    }
}

impl CacheScope<'_> {
    /// Each field with its presence and length, so that no two scopes run together.
    fn hash(&self) -> u64 {
        let mut bytes = Vec::new();
        for field in [Some(self.model), self.adapter, self.cache_salt] {
            bytes.push(u8::from(field.is_some()));
            let text = field.unwrap_or_default();
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        xxh3_64(&bytes)
    }
}

/// A token that depends on its content and its place in it (the finaliser of SplitMix64 spreads the bits).
fn content_token(content: u64, position: u64) -> Token {
    let mut bits = content.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ position.wrapping_mul(0xd1b5_4a32_d192_ed03);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits >> 32) as Token
}

#[cfg(test)]
mod tests {
    use super::*;

    const LLAMA: CacheScope<'static> = CacheScope { model: "llama", adapter: None, cache_salt: None };

    fn chain(scope: &CacheScope<'_>, tokens: &[Token]) -> Vec<BlockHash> {
        let mut builder = ChainBuilder::new(scope);
        builder.push_tokens(tokens);
        builder.build().hashes().to_vec()
    }

    #[test]
    fn only_full_blocks_have_a_hash() {
        let tokens: Vec<Token> = (0..47).collect();
        assert_eq!(chain(&LLAMA, &tokens[..15]).len(), 0);
        assert_eq!(chain(&LLAMA, &tokens[..16]).len(), 1);
        assert_eq!(chain(&LLAMA, &tokens).len(), 2);
    }

    #[test]
    fn a_hash_covers_everything_before_its_block() {
        let tokens: Vec<Token> = (0..64).collect();
        let mut other = tokens.clone();
        other[17] = 99;
        let (left, right) = (chain(&LLAMA, &tokens), chain(&LLAMA, &other));
        assert_eq!(left[0], right[0]);
        assert!((1..4).all(|block| left[block] != right[block]));
    }

    #[test]
    fn equal_tokens_in_another_scope_share_no_block() {
        let tokens: Vec<Token> = (0..32).collect();
        let scopes = [
            LLAMA,
            CacheScope { model: "llam", adapter: Some("a"), ..LLAMA },
            CacheScope { adapter: Some(""), ..LLAMA },
            CacheScope { adapter: Some("salt"), ..LLAMA },
            CacheScope { cache_salt: Some("salt"), ..LLAMA },
            CacheScope { adapter: Some("a\u{1}b"), cache_salt: Some(""), ..LLAMA },
            CacheScope { adapter: Some("a"), cache_salt: Some("b\u{1}"), ..LLAMA },
        ];
        let mut hashes: Vec<u64> = scopes.iter().flat_map(|scope| chain(scope, &tokens)).map(|hash| hash.0).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 2 * scopes.len());
    }

    #[test]
    fn pieces_make_the_same_chain_as_the_whole() {
        let tokens: Vec<Token> = (0..100).collect();
        let mut pieces = ChainBuilder::new(&LLAMA);
        pieces.push_tokens(&tokens[..33]);
        let mut continued = pieces.clone();
        continued.push_tokens(&tokens[33..]);
        assert_eq!(continued.tokens(), 100);
        assert_eq!(continued.build().hashes(), chain(&LLAMA, &tokens));
        assert_eq!(pieces.build().hashes(), chain(&LLAMA, &tokens[..33]), "the original goes its own way");
    }

    #[test]
    fn a_continuation_appends_what_the_whole_would_have() {
        let tokens: Vec<Token> = (0..100).collect();
        let mut beginning = ChainBuilder::new(&LLAMA);
        beginning.push_tokens(&tokens[..37]);
        let mut rest = beginning.continuation();
        rest.push_tokens(&tokens[37..90]);
        beginning.append(&rest);
        beginning.push_tokens(&tokens[90..]);
        assert_eq!(beginning.build().hashes(), chain(&LLAMA, &tokens));
    }

    #[test]
    fn contents_are_equal_up_to_the_shorter_length_and_differ_between_numbers() {
        let of = |content, count| {
            let mut builder = ChainBuilder::new(&LLAMA);
            builder.push_content(content, count);
            builder.build().hashes().to_vec()
        };
        assert_eq!(of(7, 64), of(7, 160)[..4]);
        assert_ne!(of(7, 16), of(8, 16));
    }
}
