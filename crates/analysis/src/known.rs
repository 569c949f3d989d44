//! Remembers which hashes came before, the most recent ones, within a bound.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

/// A set of hashes in two generations: when the young one is full, it becomes the old one, and what was in the old one
/// and did not come again is forgotten. So at least the last `generation` hashes are known, and at most twice as many.
#[derive(Debug)]
pub(crate) struct Known {
    young: HashSet<u64, AlreadyHashed>,
    old: HashSet<u64, AlreadyHashed>,
    generation: usize,
    forgot: bool,
}

pub(crate) type AlreadyHashed = BuildHasherDefault<isotherm_core::AlreadyHashed>;

impl Known {
    pub(crate) fn new(generation: usize) -> Known {
        Known { young: HashSet::default(), old: HashSet::default(), generation, forgot: false }
    }

    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.young.contains(&hash) || self.old.contains(&hash)
    }

    /// Remembers a hash as the most recent one. Whether it was new.
    pub(crate) fn insert(&mut self, hash: u64) -> bool {
        let was_known = self.contains(hash);
        if self.young.len() >= self.generation && !self.young.contains(&hash) {
            self.forgot |= !self.old.is_empty();
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(hash);
        !was_known
    }

    /// Something has been forgotten, so what is not known may have come before.
    pub(crate) fn forgot(&self) -> bool {
        self.forgot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recent_are_known_and_the_rest_is_forgotten() {
        let mut known = Known::new(3);
        assert!((1..=3).all(|hash| known.insert(hash)));
        assert!(!known.insert(1));
        assert!((4..=6).all(|hash| known.insert(hash)));
        assert!(known.contains(1) && !known.forgot());
        assert!(!known.insert(1), "used again, so as young as any");
        assert!(known.insert(7));
        assert!(known.contains(1) && !known.contains(2) && known.forgot());
        assert!(known.young.len() + known.old.len() <= 6);
    }
}
