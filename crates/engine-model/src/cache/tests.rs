//! The block pool against a plain list, and its consistency check for the engine's tests.

use proptest::prelude::*;

use super::*;

impl BlockPool {
    /// Panics unless exactly the blocks in `held` (one entry for each holder) are held, all others are free, and the
    /// map leads to exactly the blocks that cache something.
    pub(crate) fn assert_consistent(&self, held: &[BlockId]) {
        let mut holders = vec![0; self.blocks.len()];
        for block in held {
            holders[block.0 as usize] += 1;
        }
        assert_eq!(self.blocks.iter().map(|block| block.holders).collect::<Vec<_>>(), holders);

        let mut free: Vec<u32> = self.free.iter().collect();
        free.sort_unstable();
        let expected = (0_u32..).zip(&holders).filter(|&(_, &holders)| holders == 0).map(|(block, _)| block);
        assert_eq!(free, expected.collect::<Vec<_>>());
        assert_eq!(free.len(), self.free());

        let mut reachable = 0;
        for (&hash, &first) in &self.stored {
            for block in std::iter::successors(Some(first), |block| self.blocks[block.0 as usize].twin) {
                assert_eq!(self.blocks[block.0 as usize].hash, Some(hash));
                reachable += 1;
                assert!(reachable <= self.blocks.len(), "the twins form a ring");
            }
        }
        assert_eq!(reachable, self.blocks.iter().filter(|block| block.hash.is_some()).count());
    }
}

fn hashes(numbers: &[u64]) -> Vec<BlockHash> {
    numbers.iter().map(|&number| BlockHash(number)).collect()
}

/// Takes blocks and stores these hashes in them.
fn fill(pool: &mut BlockPool, chain: &[u64]) -> Vec<BlockId> {
    let mut blocks = Vec::new();
    assert!(pool.allocate(chain.len(), &mut blocks));
    for (&block, hash) in blocks.iter().zip(hashes(chain)) {
        pool.store(block, hash);
    }
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
    /// Finds the beginning of a chain, takes what is missing and stores it.
    Compute { family: u64, length: usize },
    /// Gives the blocks of one of the holders back.
    Release(prop::sample::Index),
}

fn deal() -> impl Strategy<Value = Deal> {
    prop_oneof![
        (0..4_u64, 1..6_usize).prop_map(|(family, length)| Deal::Compute { family, length }),
        any::<prop::sample::Index>().prop_map(Deal::Release),
    ]
}

/// The pool's rules, stated with lists: (block, hash), free ones oldest first.
#[derive(Default)]
struct PlainPool {
    free: Vec<(u32, Option<u64>)>,
    held: Vec<(u32, Option<u64>, usize)>,
}

impl PlainPool {
    fn hashes(&self) -> Vec<u64> {
        let held = self.held.iter().filter_map(|&(_, hash, _)| hash);
        let mut hashes: Vec<u64> = self.free.iter().filter_map(|&(_, hash)| hash).chain(held).collect();
        hashes.sort_unstable();
        hashes
    }

    fn hold(&mut self, block: u32) {
        if let Some(place) = self.free.iter().position(|&(free, _)| free == block) {
            let (block, hash) = self.free.remove(place);
            self.held.push((block, hash, 0));
        }
        self.held.iter_mut().filter(|held| held.0 == block).for_each(|held| held.2 += 1);
    }

    fn release(&mut self, blocks: &[BlockId]) {
        for block in blocks.iter().rev() {
            let place = self.held.iter().position(|held| held.0 == block.0).unwrap();
            self.held[place].2 -= 1;
            if self.held[place].2 == 0 {
                let (block, hash, _) = self.held.remove(place);
                self.free.push((block, hash));
            }
        }
    }
}

proptest! {
    #[test]
    fn the_pool_does_what_plain_lists_do(deals in prop::collection::vec(deal(), 1..60)) {
        let mut pool = BlockPool::new(8);
        let mut plain = PlainPool { free: (0..8).map(|block| (block, None)).collect(), ..PlainPool::default() };
        let mut holders: Vec<Vec<BlockId>> = Vec::new();
        for deal in deals {
            match deal {
                Deal::Compute { family, length } => {
                    let chain: Vec<u64> = (0..length as u64).map(|place| family * 100 + place).collect();
                    let mut blocks = found(&pool, &chain);
                    let cached = plain.hashes();
                    prop_assert_eq!(blocks.len(), chain.iter().take_while(|hash| cached.contains(hash)).count());
                    let missing = length - blocks.len();
                    if missing + pool.count_free(&blocks) > pool.free() {
                        continue;
                    }
                    pool.hold(&blocks);
                    blocks.iter().for_each(|block| plain.hold(block.0));
                    let hits = blocks.len();
                    prop_assert!(pool.allocate(missing, &mut blocks));
                    for (&block, &hash) in blocks[hits..].iter().zip(&chain[hits..]) {
                        prop_assert_eq!(plain.free.remove(0).0, block.0);
                        plain.held.push((block.0, Some(hash), 1));
                        pool.store(block, BlockHash(hash));
                    }
                    holders.push(blocks);
                }
                Deal::Release(index) if !holders.is_empty() => {
                    let blocks = holders.remove(index.index(holders.len()));
                    pool.release(&blocks);
                    plain.release(&blocks);
                }
                Deal::Release(_) => {}
            }
            pool.assert_consistent(&holders.concat());
            prop_assert_eq!(pool.free.iter().collect::<Vec<_>>(), plain.free.iter().map(|free| free.0).collect::<Vec<_>>());
        }
    }
}
