//! How much an instance's cache holds, learned from what the engine says it found there.

use crate::index::{Match, PrefixIndex, SeatId};

/// A prefix counts as missing when less than this part of it was found,
const FOUND: f64 = 0.7;
/// and at least so many tokens less: engines keep whole blocks only, and length in bytes tells tokens but roughly.
const MISSING: f64 = 128.0;
/// Finding this part of a prompt more than was believed tells that too much was forgotten.
const SURPLUS: f64 = 0.15;
/// How much more is believed to fit after that.
const GROWTH: f64 = 1.1;

/// What the engine's reports have taught; nothing is believed to be evicted before the first shortfall.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    learned: bool,
}

/// A prompt's tokens: what was believed and what the engine found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// Those that an earlier request had confirmed to be there.
    pub(crate) confirmed: f64,
    /// Those that were believed to be there: also what was on its way, and the answer to the prompt before.
    pub(crate) believed: f64,
    /// Those that were there.
    pub(crate) cached: f64,
    /// All.
    pub(crate) prompt: f64,
}

impl Capacity {
    /// Compares what was believed to be there of a prompt with what the engine found.
    ///
    /// A shortfall tells that the instance evicts what was last used before that prefix's last use: that is forgotten,
    /// and no more is believed to fit than what was used since. A surplus tells that too much was forgotten.
    pub(crate) fn compare(&mut self, index: &mut PrefixIndex, seat: SeatId, held: Match, found: Found) {
        let Found { confirmed, believed, cached, prompt } = found;
        if cached < (FOUND * confirmed).min(confirmed - MISSING) {
            let left = index.forget_until(seat, held.last_use);
            let capacity = index.capacity(seat).min(left.max(u64::from(held.confirmed)));
            index.set_capacity(seat, capacity);
            self.learned = true;
        } else if self.learned && cached > believed + SURPLUS * prompt {
            let grown = (index.capacity(seat) as f64 * GROWTH) as u64 + 1;
            index.set_capacity(seat, grown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::BlockHash;

    fn prompt(name: u64, blocks: u64) -> Vec<BlockHash> {
        (0..blocks).map(|i| BlockHash(name << 32 | i)).collect()
    }

    fn held(index: &PrefixIndex, prompt: &[BlockHash], seat: SeatId) -> Match {
        let mut matches = Vec::new();
        index.look_up(prompt, &mut matches);
        matches[seat.0 as usize]
    }

    fn found(confirmed: f64, cached: f64) -> Found {
        Found { confirmed, believed: confirmed, cached, prompt: 1_000.0 }
    }

    fn use_it(index: &mut PrefixIndex, prompt: &[BlockHash], seat: SeatId) {
        index.expect(prompt, seat);
        index.confirm(prompt, seat);
    }

    #[test]
    fn a_shortfall_forgets_what_is_older_and_a_surplus_gives_room_again() {
        let mut index = PrefixIndex::new(usize::MAX);
        let seat = index.sit();
        let mut capacity = Capacity::default();
        for name in 1..=10 {
            use_it(&mut index, &prompt(name, 10), seat);
        }
        let third = held(&index, &prompt(3, 10), seat);
        use_it(&mut index, &prompt(3, 10), seat);
        capacity.compare(&mut index, seat, third, found(1_000.0, 0.0));
        assert_eq!(held(&index, &prompt(2, 10), seat).blocks, 0);
        assert_eq!(held(&index, &prompt(3, 10), seat).blocks, 10, "it is there again");
        assert_eq!(index.capacity(seat), 80);
        use_it(&mut index, &prompt(11, 10), seat);
        assert_eq!(held(&index, &prompt(4, 10), seat).blocks, 0, "the longest unused made room");
        capacity.compare(&mut index, seat, Match::default(), found(0.0, 1_000.0));
        assert_eq!(index.capacity(seat), 89);
    }

    #[test]
    fn what_the_rounding_to_blocks_hides_is_no_shortfall() {
        let mut index = PrefixIndex::new(usize::MAX);
        let seat = index.sit();
        use_it(&mut index, &prompt(1, 10), seat);
        let first = held(&index, &prompt(1, 10), seat);
        for (confirmed, cached) in [(50.0, 0.0), (120.0, 0.0), (200.0, 72.0), (1_000.0, 700.0), (0.0, 0.0)] {
            Capacity::default().compare(&mut index, seat, first, found(confirmed, cached));
        }
        assert_eq!((held(&index, &prompt(1, 10), seat).blocks, index.capacity(seat)), (10, u64::MAX));
    }

    #[test]
    fn without_a_shortfall_nothing_is_believed_to_be_evicted() {
        let mut index = PrefixIndex::new(usize::MAX);
        let seat = index.sit();
        Capacity::default().compare(&mut index, seat, Match::default(), found(0.0, 1_000.0));
        assert_eq!(index.capacity(seat), u64::MAX);
    }

    #[test]
    fn a_third_of_what_was_confirmed_that_is_not_there_is_a_shortfall() {
        let mut index = PrefixIndex::new(usize::MAX);
        let seat = index.sit();
        use_it(&mut index, &prompt(1, 10), seat);
        let first = held(&index, &prompt(1, 10), seat);
        Capacity::default().compare(&mut index, seat, first, found(1_000.0, 690.0));
        assert_eq!(held(&index, &prompt(1, 10), seat).blocks, 0);
    }

    #[test]
    fn only_a_good_part_of_the_prompt_beyond_what_was_believed_is_a_surplus() {
        let mut index = PrefixIndex::new(usize::MAX);
        let seat = index.sit();
        index.set_capacity(seat, 100);
        let mut capacity = Capacity { learned: true };
        let mut after = |cached| {
            let found = Found { confirmed: 0.0, believed: 500.0, cached, prompt: 1_000.0 };
            capacity.compare(&mut index, seat, Match::default(), found);
            index.capacity(seat)
        };
        assert_eq!([500.0, 640.0, 650.0, 660.0].map(&mut after), [100, 100, 100, 111]);
    }
}
