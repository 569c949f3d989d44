//! Finds a block by its hash: a table that costs one memory access to look into.
//!
//! The number of entries is bounded and the keys are hashes already, so it is simpler and smaller than a general map.

use crate::block::BlockHash;
use crate::cache::BlockId;

/// Open addressing with linear probing over slots of 8 bytes, at most two thirds full.
#[derive(Debug)]
pub(crate) struct HashIndex {
    slots: Vec<Slot>,
    /// Number of slots, a power of two, less 1.
    mask: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    /// The low half of the hash; it says where the entry belongs, and nearly always whether it is the right one.
    tag: u32,
    block: BlockId,
}

const EMPTY: Slot = Slot { tag: 0, block: BlockId(u32::MAX) };

impl HashIndex {
    /// An empty index for up to `capacity` entries.
    pub(crate) fn new(capacity: u32) -> Self {
        let slots = (capacity as usize * 3 / 2 + 1).next_power_of_two();
        Self { slots: vec![EMPTY; slots], mask: slots - 1 }
    }

    /// The entry under a hash. `stores` tells whether a block stores exactly this hash.
    pub(crate) fn get(&self, hash: BlockHash, stores: impl Fn(BlockId) -> bool) -> Option<BlockId> {
        self.place(hash, stores).map(|place| self.slots[place].block)
    }

    /// Adds an entry. There must be none under this hash, and fewer than `capacity` in all.
    pub(crate) fn insert(&mut self, hash: BlockHash, block: BlockId) {
        let tag = hash.0 as u32;
        let mut place = self.home(tag);
        while self.slots[place] != EMPTY {
            place = (place + 1) & self.mask;
        }
        self.slots[place] = Slot { tag, block };
    }

    /// Lets the entry of one block lead to another that stores the same hash. Without an entry it does nothing.
    pub(crate) fn replace(&mut self, hash: BlockHash, block: BlockId, by: BlockId) {
        if let Some(place) = self.place(hash, |candidate| candidate == block) {
            self.slots[place].block = by;
        }
    }

    /// Takes the entry of a block out. Without an entry it does nothing.
    pub(crate) fn remove(&mut self, hash: BlockHash, block: BlockId) {
        let Some(mut gap) = self.place(hash, |candidate| candidate == block) else { return };
        // Entries behind the gap move into it, if that does not bring them before the place where their search begins.
        let mut place = gap;
        loop {
            place = (place + 1) & self.mask;
            let slot = self.slots[place];
            if slot == EMPTY {
                break;
            }
            let distance_from_home = place.wrapping_sub(self.home(slot.tag)) & self.mask;
            if distance_from_home >= place.wrapping_sub(gap) & self.mask {
                self.slots[gap] = slot;
                gap = place;
            }
        }
        self.slots[gap] = EMPTY;
    }

    fn place(&self, hash: BlockHash, is_it: impl Fn(BlockId) -> bool) -> Option<usize> {
        let tag = hash.0 as u32;
        let mut place = self.home(tag);
        loop {
            let slot = self.slots[place];
            if slot == EMPTY {
                return None;
            }
            if slot.tag == tag && is_it(slot.block) {
                return Some(place);
            }
            place = (place + 1) & self.mask;
        }
    }

    /// Where the search for an entry begins.
    fn home(&self, tag: u32) -> usize {
        tag as usize & self.mask
    }
}

#[cfg(test)]
impl HashIndex {
    /// All blocks that have an entry.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.slots.iter().filter(|&&slot| slot != EMPTY).map(|slot| slot.block)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Few distinct tags, so that entries crowd and wrap around the end of the table.
        #[test]
        fn the_index_does_what_a_map_does(actions in prop::collection::vec((0..3_u8, 0..12_u64, 0..3_u64), 1..200)) {
            let mut index = HashIndex::new(20);
            let mut map: HashMap<BlockHash, BlockId> = HashMap::new();
            let mut stored: Vec<Option<BlockHash>> = Vec::new();
            for (action, low, high) in actions {
                let hash = BlockHash((high << 32) | (low + 25));
                match (action, map.get(&hash).copied()) {
                    (0, None) if map.len() < 20 => {
                        let block = BlockId(stored.len() as u32);
                        stored.push(Some(hash));
                        index.insert(hash, block);
                        map.insert(hash, block);
                    }
                    (1, Some(block)) => {
                        index.remove(hash, block);
                        map.remove(&hash);
                    }
                    (2, Some(block)) => {
                        let by = BlockId(stored.len() as u32);
                        stored.push(Some(hash));
                        index.replace(hash, block, by);
                        map.insert(hash, by);
                    }
                    _ => {}
                }
                for low in 0..12 {
                    for high in 0..3 {
                        let hash = BlockHash((high << 32) | (low + 25));
                        let found = index.get(hash, |block| stored[block.0 as usize] == Some(hash));
                        prop_assert_eq!(found, map.get(&hash).copied());
                    }
                }
                prop_assert_eq!(index.blocks().count(), map.len());
            }
        }
    }

    #[test]
    fn taking_out_what_is_not_there_changes_nothing() {
        let mut index = HashIndex::new(2);
        index.insert(BlockHash(5), BlockId(0));
        index.remove(BlockHash(5), BlockId(1));
        index.replace(BlockHash(6), BlockId(0), BlockId(1));
        assert_eq!(index.blocks().collect::<Vec<_>>(), [BlockId(0)]);
    }
}
