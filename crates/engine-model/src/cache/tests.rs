//! The block pool against a plain list, and its consistency check for the engine's tests.

use proptest::prelude::*;

use super::*;

impl BlockPool {
    /// Panics unless exactly the blocks in `held` (one entry for each holder) are held, all others are free, and the
    /// map leads to exactly the blocks that cache something.
    pub(crate) fn assert_consistent(&self, held: &[BlockId]) {
        let mut holders = vec![0; self.capacity()];
        for block in held {
            holders[block.0 as usize] += 1;
        }
        assert_eq!(self.holders, holders);

        let mut free: Vec<u32> = self.free.iter().collect();
        free.sort_unstable();
        let expected = (0_u32..).zip(&holders).filter(|&(_, &holders)| holders == 0).map(|(block, _)| block);
        assert_eq!(free, expected.collect::<Vec<_>>());
        assert_eq!(free.len(), self.free());
        self.index.assert_consistent();
    }
}

fn hashes(numbers: &[u64]) -> Vec<BlockHash> {
    numbers.iter().map(|&number| BlockHash(number)).collect()
}

/// Takes blocks and stores these hashes in them.
fn fill(pool: &mut BlockPool, chain: &[u64]) -> Vec<BlockId> {
    let mut blocks = Vec::new();
    assert!(pool.allocate(chain.len(), &mut blocks));
    pool.store(&hashes(chain), &blocks, 0);
    blocks
}

fn found(pool: &BlockPool, chain: &[u64]) -> Vec<BlockId> {
    let mut blocks = Vec::new();
    pool.find(&hashes(chain), &mut blocks);
    blocks
}

#[test]
fn a_released_chain_is_found_until_its_blocks_are_handed_out_again() {
    let mut pool = BlockPool::new(4);
    let blocks = fill(&mut pool, &[1, 2, 3]);
    pool.release(&blocks);
    assert_eq!(found(&pool, &[1, 2, 3, 4]), blocks);

    let mut taken = Vec::new();
    assert!(pool.allocate(1, &mut taken), "the block that was never used goes first");
    assert_eq!(found(&pool, &[1, 2, 3]).len(), 3);
    assert!(pool.allocate(1, &mut taken));
    assert_eq!(found(&pool, &[1, 2, 3]).len(), 2, "the chain loses its tail first");
    assert!(pool.allocate(1, &mut taken));
    assert_eq!(found(&pool, &[1, 2, 3]).len(), 1);
    assert_eq!(pool.evicted(), 2);
}

#[test]
fn the_chain_that_was_used_last_is_evicted_last() {
    let mut pool = BlockPool::new(4);
    let older = fill(&mut pool, &[1, 2]);
    let newer = fill(&mut pool, &[3, 4]);
    pool.release(&older);
    pool.release(&newer);
    pool.hold(&older);
    pool.release(&older);

    let mut taken = Vec::new();
    assert!(pool.allocate(2, &mut taken));
    assert_eq!(found(&pool, &[3, 4]), []);
    assert_eq!(found(&pool, &[1, 2]), older);
}

#[test]
fn held_blocks_are_never_evicted() {
    let mut pool = BlockPool::new(3);
    let blocks = fill(&mut pool, &[1, 2]);
    pool.hold(&blocks[..1]);
    pool.release(&blocks);
    assert_eq!(pool.free(), 2);
    let mut taken = Vec::new();
    assert!(!pool.allocate(3, &mut taken));
    assert_eq!(taken, [], "a request that cannot have all gets none");
    assert!(pool.allocate(2, &mut taken));
    assert_eq!(found(&pool, &[1, 2]), blocks[..1]);
}

#[test]
fn twins_stay_apart_and_the_hash_lives_as_long_as_one_of_them() {
    let mut pool = BlockPool::new(3);
    let first = fill(&mut pool, &[7]);
    let second = fill(&mut pool, &[7]);
    let third = fill(&mut pool, &[7]);
    assert_eq!(found(&pool, &[7]), first);
    let mut taken = Vec::new();
    for evicted in [&second, &first, &third] {
        pool.release(evicted);
        assert!(!found(&pool, &[7]).is_empty());
        assert!(pool.allocate(1, &mut taken));
        pool.assert_consistent(&[first[0], second[0], third[0]]);
    }
    assert_eq!(found(&pool, &[7]), []);
}

/// One request's dealings with the pool.
#[derive(Debug, Clone)]
enum Deal {
    /// Finds the beginning of a chain and takes blocks for the rest.
    Begin { family: u64, length: usize },
    /// Computes up to so many further blocks of one of the requests. What another has stored meanwhile is stored twice.
    Store(prop::sample::Index, usize),
    /// One of the requests gives its blocks back.
    Release(prop::sample::Index),
}

fn deal() -> impl Strategy<Value = Deal> {
    prop_oneof![
        (0..3_u64, 1..6_usize).prop_map(|(family, length)| Deal::Begin { family, length }),
        (any::<prop::sample::Index>(), 1..6_usize).prop_map(|(request, blocks)| Deal::Store(request, blocks)),
        any::<prop::sample::Index>().prop_map(Deal::Release),
    ]
}

#[derive(Debug)]
struct Holder {
    chain: Vec<BlockHash>,
    blocks: Vec<BlockId>,
    stored: usize,
}

/// The pool's rules, stated with lists.
#[derive(Debug)]
struct PlainPool {
    /// Oldest first.
    free: Vec<BlockId>,
    held: Vec<BlockId>,
    /// In the order of storing.
    stored: Vec<(BlockHash, BlockId)>,
}

impl PlainPool {
    fn find(&self, chain: &[BlockHash]) -> Vec<BlockId> {
        let first = |hash: &BlockHash| self.stored.iter().find(|(stored, _)| stored == hash).map(|&(_, block)| block);
        chain.iter().map_while(first).collect()
    }

    fn hold(&mut self, blocks: &[BlockId]) {
        self.free.retain(|block| !blocks.contains(block));
        self.held.extend_from_slice(blocks);
    }

    fn allocate(&mut self, count: usize) -> Vec<BlockId> {
        let blocks: Vec<BlockId> = self.free.drain(..count).collect();
        self.stored.retain(|(_, block)| !blocks.contains(block));
        self.held.extend_from_slice(&blocks);
        blocks
    }

    fn release(&mut self, blocks: &[BlockId]) {
        for &block in blocks.iter().rev() {
            self.held.swap_remove(self.held.iter().position(|&held| held == block).unwrap());
            if !self.held.contains(&block) {
                self.free.push(block);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_pool_does_what_plain_lists_do(deals in prop::collection::vec(deal(), 1..60)) {
        let mut pool = BlockPool::new(12);
        let mut plain = PlainPool { free: (0..12).map(BlockId).collect(), held: Vec::new(), stored: Vec::new() };
        let mut holders: Vec<Holder> = Vec::new();
        for deal in deals {
            match deal {
                Deal::Begin { family, length } => {
                    // All families begin with the same two blocks.
                    let number = |place| if place < 2 { place } else { 100 * family + place };
                    let chain = hashes(&(0..length as u64).map(number).collect::<Vec<_>>());
                    let mut blocks = Vec::new();
                    pool.find(&chain, &mut blocks);
                    prop_assert_eq!(&blocks, &plain.find(&chain));
                    let (stored, missing) = (blocks.len(), length - blocks.len());
                    if missing + pool.count_free(&blocks) > pool.free() {
                        continue;
                    }
                    pool.hold(&blocks);
                    plain.hold(&blocks);
                    prop_assert!(pool.allocate(missing, &mut blocks));
                    prop_assert_eq!(&blocks[stored..], &plain.allocate(missing));
                    holders.push(Holder { chain, blocks, stored });
                }
                Deal::Store(index, count) if !holders.is_empty() => {
                    let index = index.index(holders.len());
                    let Holder { chain, blocks, stored } = &mut holders[index];
                    let end = chain.len().min(*stored + count);
                    pool.store(&chain[..end], &blocks[..end], *stored);
                    plain.stored.extend(chain[*stored..end].iter().copied().zip(blocks[*stored..end].iter().copied()));
                    *stored = end;
                }
                Deal::Release(index) if !holders.is_empty() => {
                    let Holder { blocks, .. } = holders.remove(index.index(holders.len()));
                    pool.release(&blocks);
                    plain.release(&blocks);
                }
                Deal::Store(..) | Deal::Release(_) => {}
            }
            pool.assert_consistent(&plain.held);
            prop_assert_eq!(pool.free.iter().map(BlockId).collect::<Vec<_>>(), plain.free.clone());
            for block in (0..12).map(BlockId) {
                let stored = plain.stored.iter().find(|&&(_, stored)| stored == block).map(|&(hash, _)| hash);
                prop_assert_eq!(pool.index.cached(block), stored);
            }
        }
    }
}
