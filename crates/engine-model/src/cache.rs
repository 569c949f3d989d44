//! The pool of KV blocks: reference counts, prefix hits, eviction of the least recently used.

use crate::block::BlockHash;
use crate::free_queue::FreeQueue;
use crate::prefix_index::PrefixIndex;

/// A block's place in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockId(pub(crate) u32);

/// All blocks of an engine. Each is held by running requests, or free; a free block may still cache a part of a prompt,
/// until it is handed out again (vLLM's `BlockPool`).
#[derive(Debug)]
pub(crate) struct BlockPool {
    /// For each block the number of running requests that hold it.
    holders: Vec<u32>,
    free: FreeQueue,
    index: PrefixIndex,
    evicted: u64,
}

impl BlockPool {
    /// A pool of free blocks that cache nothing.
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            holders: vec![0; capacity as usize],
            free: FreeQueue::full(capacity),
            index: PrefixIndex::new(capacity),
            evicted: 0,
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.holders.len()
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
        self.index.find(chain, found);
    }

    /// How many of these blocks are free now and would stop being so if they were held.
    pub(crate) fn count_free(&self, blocks: &[BlockId]) -> usize {
        blocks.iter().filter(|block| self.holders[block.0 as usize] == 0).count()
    }

    /// One more request holds these blocks. If it holds a block, it holds those before it in the chain.
    pub(crate) fn hold(&mut self, blocks: &[BlockId]) {
        for block in blocks {
            let holders = &mut self.holders[block.0 as usize];
            if *holders == 0 {
                self.free.remove(block.0);
            }
            *holders += 1;
        }
    }

    /// Hands out `count` blocks, the least recently freed first; what they cached is lost. Hands out none and says
    /// false if there are not enough.
    pub(crate) fn allocate(&mut self, count: usize, blocks: &mut Vec<BlockId>) -> bool {
        if count > self.free.len() {
            return false;
        }
        for _ in 0..count {
            let Some(block) = self.free.pop_front().map(BlockId) else { return false };
            self.evicted += u64::from(self.index.forget(block));
            self.holders[block.0 as usize] = 1;
            blocks.push(block);
        }
        true
    }

    /// From now on `blocks[from..]`, which cached nothing, can be found as `chain[from..]`; the blocks before can
    /// already.
    pub(crate) fn store(&mut self, chain: &[BlockHash], blocks: &[BlockId], from: usize) {
        self.index.store(chain, blocks, from);
    }

    /// A request gives its blocks back. The last block is freed first, so that it is also evicted first: a beginning is
    /// worth more than what follows it.
    pub(crate) fn release(&mut self, blocks: &[BlockId]) {
        for block in blocks.iter().rev() {
            let holders = &mut self.holders[block.0 as usize];
            *holders -= 1;
            if *holders == 0 {
                self.free.push_back(block.0);
            }
        }
    }
}

#[cfg(test)]
mod tests;
