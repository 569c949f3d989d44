//! Cuts a prompt into blocks and chains their hashes, as the prompt arrives.

use std::sync::Arc;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{BLOCK_BYTES, Prompt};
use crate::index::BlockHash;
use crate::{HashSeed, KeyScope};

/// Hashes a prompt in pieces of any size; only the sequence of bytes counts, not how it was cut.
///
/// The chain begins with what separates caches: endpoint, variant, model, adapter, authenticated tenant and salt. So equal
/// text under another model shares no block.
pub struct BlockHasher {
    chain: u64,
    block: Xxh3,
    filled: usize,
    bytes: u64,
    blocks: Vec<BlockHash>,
}

impl BlockHasher {
    /// A hasher of an empty prompt within its scope.
    pub fn new(seed: HashSeed, scope: &KeyScope<'_>, salt: Option<&str>) -> BlockHasher {
        let empty = crate::PrefixHasher::new(seed).digest();
        let chain = crate::prefix_key(seed, scope, None, salt, &empty).as_u128() as u64;
        BlockHasher { chain, block: Xxh3::with_seed(chain), filled: 0, bytes: 0, blocks: Vec::new() }
    }

    /// Appends bytes to the prompt.
    pub fn update(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES as usize - self.filled));
            self.block.update(part);
            self.filled += part.len();
            bytes = rest;
            if self.filled == BLOCK_BYTES as usize {
                self.chain = self.block.digest();
                self.blocks.push(BlockHash(self.chain));
                self.block = Xxh3::with_seed(self.chain);
                self.filled = 0;
            }
        }
    }

    /// The prompt; `None` when it is empty. A tenant id only orders ties.
    pub fn finish(self, tenant_id: Option<&str>) -> Option<Prompt> {
        (self.bytes > 0).then(|| Prompt {
            blocks: Arc::from(self.blocks),
            whole: self.block.digest(),
            bytes: self.bytes,
            tenant: tenant_id.map_or(0, |id| xxh3_64(id.as_bytes())),
        })
    }
}

impl std::fmt::Debug for BlockHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockHasher").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(scope: &KeyScope<'_>, pieces: &[&str]) -> Prompt {
        let mut hasher = BlockHasher::new(HashSeed(1), scope, None);
        pieces.iter().for_each(|piece| hasher.update(piece.as_bytes()));
        hasher.finish(None).unwrap()
    }

    #[test]
    fn prompts_share_blocks_exactly_as_far_as_their_text() {
        let scope = KeyScope { endpoint: "chat", ..KeyScope::default() };
        let common = "x".repeat(600);
        let (a, b) = (prompt(&scope, &[&common, "a", &common]), prompt(&scope, &[&common, "b", &common]));
        assert_eq!((a.blocks.len(), a.bytes), (4, 1_201));
        assert_eq!(a.blocks[..2], b.blocks[..2]);
        assert!(a.blocks[2] != b.blocks[2] && a.blocks[3] != b.blocks[3] && a.whole != b.whole);
    }

    #[test]
    fn how_it_was_cut_does_not_matter_and_scopes_share_nothing() {
        let scope = KeyScope { endpoint: "chat", ..KeyScope::default() };
        let text = "abcdefghij".repeat(100);
        assert_eq!(prompt(&scope, &[&text]), prompt(&scope, &[&text[..7], &text[7..300], &text[300..]]));
        let other = KeyScope { model: Some("llama"), ..scope };
        assert_ne!(prompt(&scope, &[&text]).blocks[0], prompt(&other, &[&text]).blocks[0]);
        assert_eq!(BlockHasher::new(HashSeed(1), &scope, None).finish(None), None);
    }
}
