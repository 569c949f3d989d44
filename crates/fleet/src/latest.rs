//! A map that remembers what was used last, within a bound.

use std::collections::HashMap;

/// Values by the hash of their names, at most so many; what was used least recently is forgotten first.
///
/// A list through a slab, from the most to the least recently used, and where each hash stands in it.
#[derive(Debug)]
pub(crate) struct Latest<T> {
    capacity: usize,
    place_of: HashMap<u64, usize>,
    entries: Vec<Entry<T>>,
    newest: usize,
    oldest: usize,
}

#[derive(Debug)]
struct Entry<T> {
    hash: u64,
    value: T,
    newer: usize,
    older: usize,
}

/// Where a list ends.
const END: usize = usize::MAX;

impl<T: Clone> Latest<T> {
    /// Remembers at most `capacity` values, and at least one.
    pub(crate) fn with_capacity(capacity: usize) -> Latest<T> {
        Latest { capacity: capacity.max(1), place_of: HashMap::new(), entries: Vec::new(), newest: END, oldest: END }
    }

    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The value of that hash, which counts as used now.
    pub(crate) fn get(&mut self, hash: u64) -> Option<T> {
        let &place = self.place_of.get(&hash)?;
        self.unlink(place);
        self.link_newest(place);
        Some(self.entries[place].value.clone())
    }

    /// Remembers a value in place of what the hash had before.
    pub(crate) fn insert(&mut self, hash: u64, value: T) {
        let place = match self.place_of.get(&hash) {
            Some(&place) => {
                self.unlink(place);
                place
            }
            None if self.entries.len() == self.capacity => {
                let place = self.oldest;
                self.unlink(place);
                self.place_of.remove(&self.entries[place].hash);
                place
            }
            None => {
                self.entries.push(Entry { hash, value: value.clone(), newer: END, older: END });
                self.entries.len() - 1
            }
        };
        self.entries[place].hash = hash;
        self.entries[place].value = value;
        self.place_of.insert(hash, place);
        self.link_newest(place);
    }

    /// Forgets the value of that hash.
    pub(crate) fn remove(&mut self, hash: u64) -> Option<T> {
        let place = self.place_of.remove(&hash)?;
        self.unlink(place);
        let removed = self.entries.swap_remove(place);
        if let Some(Entry { hash, newer, older, .. }) = self.entries.get(place) {
            // The last one has moved here: its neighbours have to know.
            let (hash, newer, older) = (*hash, *newer, *older);
            self.place_of.insert(hash, place);
            self.join(newer, place);
            self.join(place, older);
        }
        Some(removed.value)
    }

    fn unlink(&mut self, place: usize) {
        let Entry { newer, older, .. } = self.entries[place];
        self.join(newer, older);
    }

    fn link_newest(&mut self, place: usize) {
        let second = self.newest;
        self.join(END, place);
        self.join(place, second);
    }

    /// Makes two places neighbours; [`END`] on one side makes the other the first or the last.
    fn join(&mut self, newer: usize, older: usize) {
        match newer {
            END => self.newest = older,
            _ => self.entries[newer].older = older,
        }
        match older {
            END => self.oldest = newer,
            _ => self.entries[older].newer = newer,
        }
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    #[test]
    fn it_behaves_like_a_list_and_never_grows_beyond_its_capacity() {
        let mut latest = Latest::with_capacity(8);
        let mut model: Vec<u64> = Vec::new();
        let mut step = 1u32;
        for _ in 0..20_000 {
            step = step.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let hash = u64::from((step >> 8) % 20);
            let found = latest.get(hash);
            assert_eq!(found, model.contains(&hash).then_some(hash));
            model.retain(|&known| known != hash);
            match (step >> 16) % 4 {
                0 => assert_eq!(latest.remove(hash), found),
                1 if found.is_none() => {}
                _ => {
                    latest.insert(hash, hash);
                    model.insert(0, hash);
                    model.truncate(8);
                }
            }
            assert_eq!(latest.len(), model.len());
        }
    }

    #[test]
    fn nothing_is_left_when_all_are_removed() {
        let mut latest = Latest::with_capacity(4);
        for hash in 0..4 {
            latest.insert(hash, hash);
        }
        for hash in [1, 3, 0, 2] {
            assert_eq!(latest.remove(hash), Some(hash));
        }
        assert_eq!((latest.len(), latest.remove(1)), (0, None));
        latest.insert(9, 9);
        assert_eq!(latest.get(9), Some(9));
    }
}
