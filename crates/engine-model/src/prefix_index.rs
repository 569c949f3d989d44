//! Which blocks cache which part of which chain.
//!
//! A prompt of 8,000 tokens looks up, stores or evicts 500 blocks, and a simulated fleet sees tens of thousands of such
//! prompts an hour. So the common case, block after block of one chain, follows links from a block to its successor, which
//! mostly stand side by side in memory; only beginnings and branches go through a hash table.

use crate::block::BlockHash;
use crate::cache::BlockId;
use crate::hash_index::HashIndex;

/// For each cached hash the blocks that cache it. Blocks are never merged, because the tables of running requests only
/// grow: two requests that computed the same block at the same time both keep theirs, as *twins*. The twin that stored
/// the hash first is the one that is found (as in vLLM); when it goes, the next takes its place.
///
/// It relies on a rule of the pool: what stands behind an uncached block in a chain is not cached either. Whoever holds
/// a block holds those before it, and gives them back later, so they are also overwritten later.
#[derive(Debug)]
pub(crate) struct PrefixIndex {
    nodes: Vec<Node>,
    /// The first twins that are not reached by a link from their parent.
    unlinked: HashIndex,
}

/// 32 bytes, because a simulated fleet has half a million of them and walks over them all the time.
#[derive(Debug, Clone, Copy)]
struct Node {
    hash: BlockHash,
    /// The ring of twins, in the order of storing; alone it leads to itself.
    next_twin: BlockId,
    previous_twin: BlockId,
    /// One of the blocks that continue this one, or `NONE`. Only first twins have it.
    successor: BlockId,
    /// The block whose successor this one is.
    parent: BlockId,
    standing: Standing,
}

/// How a block is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It caches nothing.
    Empty,
    /// As the successor of its parent.
    Linked,
    /// By its hash.
    Unlinked,
    /// Not at all: another block cached the same before it.
    Twin,
}

const NONE: BlockId = BlockId(u32::MAX);

impl PrefixIndex {
    /// An index of blocks that cache nothing.
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            nodes: (0..capacity).map(|block| Node::empty(BlockId(block))).collect(),
            unlinked: HashIndex::new(capacity),
        }
    }

    /// Appends the blocks of the longest cached beginning of a chain.
    pub(crate) fn find(&self, chain: &[BlockHash], found: &mut Vec<BlockId>) {
        let mut parent = NONE;
        for &hash in chain {
            let Some(block) = self.first_twin(parent, hash) else { return };
            found.push(block);
            parent = block;
        }
    }

    /// From now on `blocks[from..]`, which cached nothing, cache `chain[from..]`; the blocks before do already.
    pub(crate) fn store(&mut self, chain: &[BlockHash], blocks: &[BlockId], from: usize) {
        let mut parent = self.first_twin_before(chain, blocks, from);
        let mut uncached = false;
        for (&hash, &block) in chain.iter().zip(blocks).skip(from) {
            let first = if uncached { None } else { self.first_twin(parent, hash) };
            self.node(block).hash = hash;
            if let Some(first) = first {
                self.join(block, first);
            } else {
                self.lead(block, parent);
                uncached = true;
            }
            parent = first.unwrap_or(block);
        }
    }

    /// The block caches nothing any more. Returns whether it did.
    pub(crate) fn forget(&mut self, block: BlockId) -> bool {
        let node = std::mem::replace(self.node(block), Node::empty(block));
        self.node(node.previous_twin).next_twin = node.next_twin;
        self.node(node.next_twin).previous_twin = node.previous_twin;
        let heir = (node.next_twin != block).then_some(node.next_twin);
        match node.standing {
            Standing::Empty => return false,
            Standing::Twin => return true,
            Standing::Linked => self.node(node.parent).successor = heir.unwrap_or(NONE),
            Standing::Unlinked => match heir {
                Some(heir) => self.unlinked.replace(node.hash, block, heir),
                None => self.unlinked.remove(node.hash, block),
            },
        }
        if let Some(heir) = heir {
            let heir = self.node(heir);
            (heir.standing, heir.parent, heir.successor) = (node.standing, node.parent, node.successor);
        }
        if node.successor != NONE {
            self.adopt(node.successor, heir);
        }
        true
    }

    /// The found block behind `parent` (itself found, or `NONE`) that caches a hash.
    fn first_twin(&self, parent: BlockId, hash: BlockHash) -> Option<BlockId> {
        let successor = self.nodes.get(parent.0 as usize).map_or(NONE, |parent| parent.successor);
        if self.nodes.get(successor.0 as usize).is_some_and(|successor| successor.hash == hash) {
            return Some(successor);
        }
        self.unlinked.get(hash, |block| self.nodes[block.0 as usize].hash == hash)
    }

    /// The found twin of `blocks[from - 1]`, or `NONE`. A twin does not know the first of its ring, which may be long.
    fn first_twin_before(&self, chain: &[BlockHash], blocks: &[BlockId], from: usize) -> BlockId {
        let Some(&before) = from.checked_sub(1).and_then(|before| blocks.get(before)) else { return NONE };
        if self.nodes[before.0 as usize].standing != Standing::Twin {
            return before;
        }
        let follow = |parent, &hash| self.first_twin(parent, hash);
        chain[..from].iter().try_fold(NONE, follow).unwrap_or(NONE)
    }

    /// The block becomes the last in the ring of `first`.
    fn join(&mut self, block: BlockId, first: BlockId) {
        let last = std::mem::replace(&mut self.node(first).previous_twin, block);
        self.node(last).next_twin = block;
        let node = self.node(block);
        (node.previous_twin, node.next_twin, node.standing) = (last, first, Standing::Twin);
    }

    /// The block is the first with its hash.
    fn lead(&mut self, block: BlockId, parent: BlockId) {
        let parent_is_free = self.nodes.get(parent.0 as usize).is_some_and(|parent| parent.successor == NONE);
        if parent_is_free {
            self.node(parent).successor = block;
            (self.node(block).parent, self.node(block).standing) = (parent, Standing::Linked);
        } else {
            self.node(block).standing = Standing::Unlinked;
            self.unlinked.insert(self.nodes[block.0 as usize].hash, block);
        }
    }

    /// Gives the successor of a block that goes to the twin that takes its place, if there is one.
    fn adopt(&mut self, successor: BlockId, heir: Option<BlockId>) {
        let node = self.node(successor);
        node.parent = heir.unwrap_or(NONE);
        if heir.is_none() {
            node.standing = Standing::Unlinked;
            let hash = node.hash;
            self.unlinked.insert(hash, successor);
        }
    }

    fn node(&mut self, block: BlockId) -> &mut Node {
        &mut self.nodes[block.0 as usize]
    }
}

impl Node {
    fn empty(block: BlockId) -> Self {
        Self {
            hash: BlockHash(0),
            next_twin: block,
            previous_twin: block,
            successor: NONE,
            parent: NONE,
            standing: Standing::Empty,
        }
    }
}

#[cfg(test)]
impl PrefixIndex {
    /// What a block caches.
    pub(crate) fn cached(&self, block: BlockId) -> Option<BlockHash> {
        let node = &self.nodes[block.0 as usize];
        (node.standing != Standing::Empty).then_some(node.hash)
    }

    /// Panics unless links, rings and table fit together.
    pub(crate) fn assert_consistent(&self) {
        let mut unlinked: Vec<BlockId> = self.unlinked.blocks().collect();
        unlinked.sort_unstable();
        let blocks = || (0..self.nodes.len() as u32).map(BlockId);
        let standing = |standing| blocks().filter(move |block| self.nodes[block.0 as usize].standing == standing);
        assert_eq!(unlinked, standing(Standing::Unlinked).collect::<Vec<_>>());
        for block in blocks() {
            let node = &self.nodes[block.0 as usize];
            let next = &self.nodes[node.next_twin.0 as usize];
            assert_eq!((next.hash, next.previous_twin), (node.hash, block));
            let linked = node.parent != NONE && self.nodes[node.parent.0 as usize].successor == block;
            assert_eq!(linked, node.standing == Standing::Linked, "{block:?} {node:?}");
            let leads = matches!(node.standing, Standing::Linked | Standing::Unlinked);
            assert!(leads || node.successor == NONE, "{block:?} {node:?}");
        }
        for twin in standing(Standing::Twin) {
            let ring = std::iter::successors(Some(twin), |block| Some(self.nodes[block.0 as usize].next_twin));
            let leads = |block: BlockId| self.nodes[block.0 as usize].standing != Standing::Twin;
            assert_eq!(ring.skip(1).take_while(|&block| block != twin).filter(|&block| leads(block)).count(), 1);
        }
    }
}
