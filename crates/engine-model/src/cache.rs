//! The pool of KV blocks: reference counts, prefix hits, eviction of the least recently used.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use crate::block::BlockHash;
use crate::free_queue::FreeQueue;

/// A block's place in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockId(pub(crate) u32);

/// All blocks of an engine. Each is held by running requests, or free; a free block may still hold a cached prefix,
/// until it is handed out again (vLLM's `BlockPool`).
#[derive(Debug)]
pub(crate) struct BlockPool {
    blocks: Vec<Block>,
    free: FreeQueue,
    /// The first of the blocks stored under a hash.
    stored: HashMap<BlockHash, BlockId, BuildHasherDefault<AlreadyHashed>>,
    evicted: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// What it caches.
    hash: Option<BlockHash>,
    /// Running requests that hold it.
    holders: u32,
    /// The next block stored under the same hash. Blocks are never merged, because the tables of running requests
    /// only grow; so two requests that computed the same block at the same time both keep theirs.
    twin: Option<BlockId>,
}

impl BlockPool {
    /// A pool of free blocks that cache nothing.
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            blocks: vec![Block::default(); capacity as usize],
            free: FreeQueue::full(capacity),
            stored: HashMap::default(),
            evicted: 0,
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.blocks.len()
    }

    /// Blocks that no running request holds, whether or not they cache something.
    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// Cached blocks that were overwritten so far.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Appends the blocks of the longest cached beginning of a chain.
    pub(crate) fn find(&self, chain: &[BlockHash], found: &mut Vec<BlockId>) {
        found.extend(chain.iter().map_while(|hash| self.stored.get(hash).copied()));
    }

    /// How many of these blocks are free now and would stop being so if they were held.
    pub(crate) fn count_free(&self, blocks: &[BlockId]) -> usize {
        blocks.iter().filter(|block| self.blocks[block.0 as usize].holders == 0).count()
    }

    /// One more request holds these blocks.
    pub(crate) fn hold(&mut self, blocks: &[BlockId]) {
        for &block in blocks {
            let state = &mut self.blocks[block.0 as usize];
            if state.holders == 0 {
                self.free.remove(block.0);
            }
            state.holders += 1;
        }
    }

    /// Hands out `count` blocks, the least recently freed first; what they cached is lost. Hands out none and says
    /// false if there are not enough.
    pub(crate) fn allocate(&mut self, count: usize, blocks: &mut Vec<BlockId>) -> bool {
        if count > self.free.len() {
            return false;
        }
        for block in std::iter::from_fn(|| self.free.pop_front()).take(count) {
            let block = BlockId(block);
            evict(&mut self.blocks, &mut self.stored, &mut self.evicted, block);
            self.blocks[block.0 as usize].holders = 1;
            blocks.push(block);
        }
        true
    }

    /// From now on the block can be found by its hash.
    pub(crate) fn store(&mut self, block: BlockId, hash: BlockHash) {
        self.blocks[block.0 as usize].hash = Some(hash);
        match self.stored.entry(hash) {
            Entry::Vacant(entry) => {
                entry.insert(block);
            }
            Entry::Occupied(entry) => {
                let first = entry.get().0 as usize;
                self.blocks[block.0 as usize].twin = self.blocks[first].twin.replace(block);
            }
        }
    }

    /// A request gives its blocks back. The last block is freed first, so that it is also evicted first: a beginning is
    /// worth more than what follows it.
    pub(crate) fn release(&mut self, blocks: &[BlockId]) {
        for &block in blocks.iter().rev() {
            let state = &mut self.blocks[block.0 as usize];
            state.holders -= 1;
            if state.holders == 0 {
                self.free.push_back(block.0);
            }
        }
    }
}

/// Forgets what a block caches.
fn evict(
    blocks: &mut [Block],
    stored: &mut HashMap<BlockHash, BlockId, BuildHasherDefault<AlreadyHashed>>,
    evicted: &mut u64,
    block: BlockId,
) {
    let Block { hash: Some(hash), twin, .. } = std::mem::take(&mut blocks[block.0 as usize]) else { return };
    *evicted += 1;
    let Entry::Occupied(mut first) = stored.entry(hash) else { return };
    if *first.get() != block {
        let mut before = *first.get();
        while let Some(next) = blocks[before.0 as usize].twin.filter(|&next| next != block) {
            before = next;
        }
        blocks[before.0 as usize].twin = twin;
    } else if let Some(twin) = twin {
        first.insert(twin);
    } else {
        first.remove();
    }
}

/// Passes a block's hash through: it is one already.
#[derive(Debug, Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests;
