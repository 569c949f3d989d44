//! The index against a plain model: one map per instance from prefix to last use.

mod found;

use proptest::prelude::*;

use super::*;

/// Chained hashes of some words, as prompts have them.
fn chain(words: &[u8]) -> Vec<BlockHash> {
    let mut hash = 0x9e37_79b9_7f4a_7c15u64;
    words
        .iter()
        .map(|word| {
            hash = xxhash_rust::xxh3::xxh3_64_with_seed(&[*word], hash);
            BlockHash(hash)
        })
        .collect()
}

fn held(index: &PrefixIndex, words: &[u8], seat: SeatId) -> u32 {
    let mut matches = Vec::new();
    index.look_up(&chain(words), &mut matches);
    matches[seat.0 as usize].blocks
}

#[test]
fn a_prompt_is_held_where_it_went_as_far_as_it_is_shared() {
    let mut index = PrefixIndex::new(usize::MAX);
    let (a, b) = (index.sit(), index.sit());
    index.expect(&chain(b"abcdef"), a);
    index.expect(&chain(b"abcxyz"), b);
    assert_eq!((held(&index, b"abcdefgh", a), held(&index, b"abcdefgh", b)), (6, 3));
    assert_eq!((held(&index, b"abcxzz", a), held(&index, b"abcxzz", b)), (3, 4));
    assert_eq!((held(&index, b"zabc", a), held(&index, b"ab", b)), (0, 2));
}

#[test]
fn an_expectation_is_withdrawn_with_the_request_that_failed_unless_another_has_it_too() {
    let mut index = PrefixIndex::new(usize::MAX);
    let a = index.sit();
    index.expect(&chain(b"abcd"), a);
    index.expect(&chain(b"abcd"), a);
    index.withdraw(&chain(b"abcd"), a);
    assert_eq!(held(&index, b"abcd", a), 4);
    index.withdraw(&chain(b"abcd"), a);
    assert_eq!(held(&index, b"abcd", a), 0);
    assert_eq!(index.bytes, 0, "nothing is left of it");

    index.expect(&chain(b"ab"), a);
    index.confirm(&chain(b"ab"), a);
    index.expect(&chain(b"abcd"), a);
    let mut matches = Vec::new();
    index.look_up(&chain(b"abcd"), &mut matches);
    assert_eq!((matches[0].blocks, matches[0].confirmed), (4, 2));
    index.withdraw(&chain(b"abcd"), a);
    assert_eq!(held(&index, b"abcd", a), 2, "what was confirmed stays");
}

#[test]
fn beyond_its_capacity_an_instance_forgets_the_ends_of_what_it_used_longest_ago() {
    let mut index = PrefixIndex::new(usize::MAX);
    let a = index.sit();
    index.set_capacity(a, 8);
    for prompt in [&b"abcd"[..], b"efgh", b"ab", b"xy"] {
        index.expect(&chain(prompt), a);
        index.confirm(&chain(prompt), a);
    }
    // Eight fit. Of the ten, the end goes whose use lies furthest back, though its beginning was used again.
    assert_eq!((held(&index, b"abcd", a), held(&index, b"efgh", a), held(&index, b"xy", a)), (2, 4, 2));
}

#[test]
fn forgetting_until_a_moment_keeps_what_was_used_later() {
    let mut index = PrefixIndex::new(usize::MAX);
    let a = index.sit();
    for prompt in [b"aaaa", b"bbbb", b"cccc"] {
        index.expect(&chain(prompt), a);
        index.confirm(&chain(prompt), a);
    }
    let mut matches = Vec::new();
    index.look_up(&chain(b"bbbb"), &mut matches);
    assert_eq!(index.forget_until(a, matches[0].last_use), 4);
    assert_eq!((held(&index, b"bbbb", a), held(&index, b"cccc", a)), (0, 4));
}

#[test]
fn an_instance_that_leaves_takes_everything_with_it() {
    let mut index = PrefixIndex::new(usize::MAX);
    let (a, b) = (index.sit(), index.sit());
    index.expect(&chain(b"abcd"), a);
    index.expect(&chain(b"abxy"), b);
    index.leave(a);
    assert_eq!(held(&index, b"abcd", b), 2);
    let again = index.sit();
    assert_eq!(again, a, "its seat is given again");
    assert_eq!(held(&index, b"abcd", again), 0);
    index.leave(b);
    assert_eq!(index.bytes, 0);
}

#[test]
fn the_budget_holds_over_many_distinct_prompts() {
    let mut index = PrefixIndex::new(100_000);
    let seats = [index.sit(), index.sit(), index.sit()];
    for i in 0..20_000u32 {
        let words: Vec<u8> = i.to_le_bytes().into_iter().chain(*b"tail").collect();
        index.expect(&chain(&words), seats[i as usize % 3]);
        index.confirm(&chain(&words), seats[i as usize % 3]);
        assert!(index.bytes <= 100_000);
    }
    assert!(index.bytes > 90_000);
    assert_eq!(held(&index, &[&19_999u32.to_le_bytes()[..], b"tail"].concat(), seats[19_999 % 3]), 8);
}

#[derive(Debug, Clone)]
enum Step {
    Expect(Vec<u8>, usize),
    Confirm(prop::sample::Index),
    Withdraw(prop::sample::Index),
    Capacity(usize, u64),
    Leave(usize),
}

fn steps() -> impl proptest::strategy::Strategy<Value = Vec<Step>> {
    use proptest::strategy::Strategy as _;
    let words = prop::collection::vec(0u8..3, 0..7);
    let step = prop_oneof![
        6 => (words, 0usize..3).prop_map(|(words, seat)| Step::Expect(words, seat)),
        3 => any::<prop::sample::Index>().prop_map(Step::Confirm),
        2 => any::<prop::sample::Index>().prop_map(Step::Withdraw),
        1 => (0usize..3, 1u64..12).prop_map(|(seat, blocks)| Step::Capacity(seat, blocks)),
        1 => (0usize..3).prop_map(Step::Leave),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    /// Counts agree with the tree, what requests on their way use is held, and nothing is left when all have left.
    #[test]
    fn the_tree_is_consistent_under_any_history(steps in steps()) {
        let mut index = PrefixIndex::new(usize::MAX);
        let mut seats: Vec<SeatId> = (0..3).map(|_| index.sit()).collect();
        let mut on_their_way: Vec<(Vec<u8>, usize)> = Vec::new();
        for step in steps {
            match step {
                Step::Expect(words, seat) => {
                    index.expect(&chain(&words), seats[seat]);
                    on_their_way.push((words, seat));
                }
                Step::Confirm(which) if !on_their_way.is_empty() => {
                    let (words, seat) = on_their_way.swap_remove(which.index(on_their_way.len()));
                    index.confirm(&chain(&words), seats[seat]);
                }
                Step::Withdraw(which) if !on_their_way.is_empty() => {
                    let (words, seat) = on_their_way.swap_remove(which.index(on_their_way.len()));
                    index.withdraw(&chain(&words), seats[seat]);
                }
                Step::Confirm(_) | Step::Withdraw(_) => {}
                Step::Capacity(seat, blocks) => index.set_capacity(seats[seat], blocks),
                Step::Leave(seat) => {
                    on_their_way.retain(|(_, on)| *on != seat);
                    index.leave(seats[seat]);
                    seats[seat] = index.sit();
                }
            }
            index.check(on_their_way.is_empty());
            for (words, seat) in &on_their_way {
                prop_assert_eq!(held(&index, words, seats[*seat]), words.len() as u32);
            }
        }
        for seat in seats {
            index.leave(seat);
        }
        prop_assert_eq!(index.bytes, 0);
    }
}

impl PrefixIndex {
    fn check(&self, idle: bool) {
        let mut blocks = vec![0u64; self.seats.len()];
        let mut bytes = 0;
        for (first, id) in &self.by_first_block {
            let node = &self.nodes[*id];
            assert_eq!(node.run[0], *first);
            assert!(!node.residences.is_empty());
            bytes += node.bytes() + node.residences.len() * node::RESIDENCE_BYTES;
            for residence in &node.residences {
                assert!((1..=node.run.len() as u32).contains(&node.held(residence)));
                blocks[residence.seat.0 as usize] += u64::from(node.held(residence));
            }
        }
        assert_eq!(bytes, self.bytes);
        for (seat, blocks) in self.seats.iter().zip(blocks) {
            let Some(seat) = seat else { continue };
            assert_eq!(seat.blocks, blocks);
            assert!(!idle || seat.blocks <= seat.capacity);
        }
    }
}
