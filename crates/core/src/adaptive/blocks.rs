//! Cuts a prompt into blocks and chains their hashes, as the prompt arrives.

use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::{BLOCK_BYTES, Prompt};
use crate::index::BlockHash;
use crate::{HashSeed, KeyScope};

const BLOCK: usize = BLOCK_BYTES as usize;

/// Hashes a prompt in pieces of any size; only the sequence of bytes counts, and where its messages end, not how it was
/// cut.
pub struct BlockHasher {
    chain: u64,
    /// The beginning of a block that is not whole.
    begun: [u8; BLOCK],
    filled: usize,
    bytes: u32,
    blocks: Vec<BlockHash>,
    ends: Vec<u32>,
}

/// The hashes of a prompt alone, before its scope is known (`model` may follow the messages in a body).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptDigest {
    blocks: Box<[BlockHash]>,
    ends: Arc<[u32]>,
}

impl BlockHasher {
    /// A hasher of an empty prompt.
    pub fn new(seed: HashSeed) -> BlockHasher {
        BlockHasher { chain: seed.0, begun: [0; BLOCK], filled: 0, bytes: 0, blocks: Vec::new(), ends: Vec::new() }
    }

    /// Appends bytes to the prompt.
    pub fn update(&mut self, mut bytes: &[u8]) {
        if self.filled > 0 {
            let (part, rest) = bytes.split_at(bytes.len().min(BLOCK - self.filled));
            self.begun[self.filled..self.filled + part.len()].copy_from_slice(part);
            self.filled += part.len();
            if self.filled < BLOCK {
                return;
            }
            self.end_block();
            bytes = rest;
        }
        let mut blocks = bytes.chunks_exact(BLOCK);
        blocks.by_ref().for_each(|block| self.chain_on(block));
        let rest = blocks.remainder();
        self.begun[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
    }

    /// A message ends here, and a block with it: a later prompt that goes on from here begins with the same blocks, even
    /// where the message is shorter than one.
    pub fn end_message(&mut self) {
        if self.filled > 0 {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        let (block, filled) = (self.begun, std::mem::take(&mut self.filled));
        self.chain_on(&block[..filled]);
    }

    fn chain_on(&mut self, block: &[u8]) {
        self.chain = xxh3_64_with_seed(block, self.chain);
        self.bytes = self.bytes.saturating_add(block.len() as u32);
        self.blocks.push(BlockHash(self.chain));
        self.ends.push(self.bytes);
    }

    /// Names all bytes so far, whether or not a block ends with them, and tells how many they are.
    pub fn so_far(&self) -> (BlockHash, u32) {
        let begun = &self.begun[..self.filled];
        let chain = if begun.is_empty() { self.chain } else { xxh3_64_with_seed(begun, self.chain) };
        (BlockHash(chain), self.bytes.saturating_add(self.filled as u32))
    }

    /// The hashes of the bytes so far; `None` when there were none.
    pub fn finish(mut self) -> Option<PromptDigest> {
        self.end_message();
        (!self.blocks.is_empty()).then(|| PromptDigest { blocks: self.blocks.into(), ends: self.ends.into() })
    }
}

impl PromptDigest {
    /// Chained hashes of the blocks, unrelated to any scope.
    pub fn blocks(&self) -> &[BlockHash] {
        &self.blocks
    }

    /// Where each block ends, in bytes from the prompt's beginning.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// The prompt within what separates caches: endpoint, variant, model, adapter, authenticated tenant and salt. Equal
    /// text under another model shares no block. A tenant id only orders ties.
    pub fn within(&self, seed: HashSeed, scope: &KeyScope<'_>, salt: Option<&str>, tenant_id: Option<&str>) -> Prompt {
        let empty = crate::PrefixHasher::new(seed).digest();
        let scope = crate::prefix_key(seed, scope, None, salt, &empty).as_u128() as u64;
        Prompt {
            // Both are hashes already, so their bits are as good as any.
            blocks: self.blocks.iter().map(|block| BlockHash(block.0 ^ scope)).collect(),
            ends: Arc::clone(&self.ends),
            tenant: tenant_id.map_or(0, |id| xxh3_64(id.as_bytes())),
        }
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

    const SEED: HashSeed = HashSeed(1);
    const SCOPE: KeyScope<'static> =
        KeyScope { endpoint: "chat", variant: "AllTraffic", model: None, adapter: None, tenant: None };

    fn digest(pieces: &[&str]) -> PromptDigest {
        let mut hasher = BlockHasher::new(SEED);
        pieces.iter().for_each(|piece| hasher.update(piece.as_bytes()));
        hasher.finish().unwrap()
    }

    #[test]
    fn prompts_share_blocks_exactly_as_far_as_their_text() {
        let common = "x".repeat(2 * BLOCK + 50);
        let within = |pieces: &[&str]| digest(pieces).within(SEED, &SCOPE, None, None);
        let (a, b) = (within(&[&common, "a", &common]), within(&[&common, "b", &common]));
        assert_eq!((a.blocks.len(), a.bytes()), (6, 2 * common.len() as u64 + 1));
        assert_eq!(a.blocks[..2], b.blocks[..2]);
        assert!((2..6).all(|at| a.blocks[at] != b.blocks[at]));
        assert_ne!(a.blocks[0], a.blocks[1], "equal blocks at different places differ");
    }

    #[test]
    fn a_conversation_that_goes_on_begins_with_the_blocks_of_what_was_said_before() {
        let spoken = |messages: &[&str]| {
            let mut hasher = BlockHasher::new(SEED);
            for message in messages {
                hasher.update(message.as_bytes());
                hasher.end_message();
            }
            hasher.finish().unwrap().within(SEED, &SCOPE, None, None)
        };
        let (first, second) = (spoken(&["Hello"]), spoken(&["Hello", "Good morning!", "How warm is it?"]));
        assert_eq!((first.blocks.len(), &first.blocks[..]), (1, &second.blocks[..1]));
        assert_eq!(second.ends[..], [5, 18, 33]);
        assert_ne!(first.blocks, spoken(&["Hell"]).blocks);
        assert_eq!(spoken(&["Hello", ""]), first, "an empty message is no block");
    }

    #[test]
    fn what_was_given_so_far_is_named_wherever_one_stands() {
        let mut hasher = BlockHasher::new(SEED);
        hasher.update(&[b'x'; BLOCK + 5]);
        let within = hasher.so_far();
        hasher.end_message();
        assert_eq!((within, within.1), (hasher.so_far(), BLOCK as u32 + 5), "an end of a message changes no name");
        hasher.update(b"y");
        let after = hasher.so_far();
        assert_ne!(after.0, within.0);
        let digest = hasher.finish().unwrap();
        assert_eq!((digest.blocks().last(), digest.ends().last()), (Some(&after.0), Some(&after.1)));
    }

    #[test]
    fn how_it_was_cut_does_not_matter() {
        let text = "abcdefghij".repeat(100);
        let whole = digest(&[&text]);
        for at in [1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 999] {
            assert_eq!(whole, digest(&[&text[..at], &text[at..]]), "{at}");
        }
        assert_eq!(whole, digest(&text.split_inclusive('j').collect::<Vec<_>>()));
        assert_eq!(BlockHasher::new(SEED).finish(), None);
    }

    #[test]
    fn scopes_and_salts_share_nothing_and_tenant_ids_share_everything() {
        let digest = digest(&["abcdefghij".repeat(100).as_str()]);
        let plain = digest.within(SEED, &SCOPE, None, None);
        let others = [
            digest.within(SEED, &KeyScope { model: Some("llama"), ..SCOPE }, None, None),
            digest.within(SEED, &KeyScope { tenant: Some("acme"), ..SCOPE }, None, None),
            digest.within(SEED, &SCOPE, Some("salt"), None),
        ];
        for other in others {
            assert!(plain.blocks.iter().all(|block| !other.blocks.contains(block)));
        }
        let user = digest.within(SEED, &SCOPE, None, Some("user"));
        assert_eq!((&user.blocks, user.tenant != plain.tenant), (&plain.blocks, true));
    }

    #[test]
    fn within_a_scope_blocks_are_as_far_apart_as_before() {
        let digest = digest(&["abcdefghij".repeat(100).as_str()]);
        let prompt = digest.within(SEED, &SCOPE, Some("salt"), None);
        let apart = |blocks: &[BlockHash]| blocks.windows(2).map(|two| two[0].0 ^ two[1].0).collect::<Vec<u64>>();
        assert_eq!(apart(&prompt.blocks), apart(digest.blocks()), "not a bit of a hash is lost");
    }
}
