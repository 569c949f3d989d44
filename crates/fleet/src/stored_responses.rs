//! Which instance keeps which stored response, so that `previous_response_id` and `/v1/responses/{id}` find it again.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Location;

/// How many responses are remembered when nothing else is said.
const DEFAULT_CAPACITY: usize = 100_000;

/// Remembers where responses are stored: the latest ones, within a bound.
///
/// Ids are kept as hashes under a key of this process: about 60 bytes each, no text, and nobody can make two ids
/// collide. What was used least recently is forgotten first. Shared by all threads.
#[derive(Debug)]
pub struct StoredResponses {
    hasher: RandomState,
    remembered: Mutex<Remembered>,
}

/// A list through a slab, from the most to the least recently used, and where each hash stands in it.
#[derive(Debug)]
struct Remembered {
    capacity: usize,
    place_of: HashMap<u64, usize>,
    entries: Vec<Entry>,
    newest: usize,
    oldest: usize,
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    location: Arc<Location>,
    newer: usize,
    older: usize,
}

/// Where a list ends.
const END: usize = usize::MAX;

impl Default for StoredResponses {
    fn default() -> StoredResponses {
        StoredResponses::with_capacity(DEFAULT_CAPACITY)
    }
}

impl StoredResponses {
    /// Remembers at most `capacity` responses, and at least one.
    pub fn with_capacity(capacity: usize) -> StoredResponses {
        let remembered = Remembered {
            capacity: capacity.max(1),
            place_of: HashMap::new(),
            entries: Vec::new(),
            newest: END,
            oldest: END,
        };
        StoredResponses { hasher: RandomState::new(), remembered: Mutex::new(remembered) }
    }

    /// Remembers that the response of that id is stored there.
    pub fn remember(&self, response_id: &str, location: &Arc<Location>) {
        let hash = self.hasher.hash_one(response_id);
        self.remembered.lock().insert(hash, Arc::clone(location));
    }

    /// Where the response of that id is stored, if it is remembered.
    pub fn locate(&self, response_id: &str) -> Option<Arc<Location>> {
        let hash = self.hasher.hash_one(response_id);
        self.remembered.lock().get(hash)
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.remembered.lock().entries.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Remembered {
    fn get(&mut self, hash: u64) -> Option<Arc<Location>> {
        let &place = self.place_of.get(&hash)?;
        self.unlink(place);
        self.link_newest(place);
        Some(Arc::clone(&self.entries[place].location))
    }

    fn insert(&mut self, hash: u64, location: Arc<Location>) {
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
                self.entries.push(Entry { hash, location: Arc::clone(&location), newer: END, older: END });
                self.entries.len() - 1
            }
        };
        self.entries[place].hash = hash;
        self.entries[place].location = location;
        self.place_of.insert(hash, place);
        self.link_newest(place);
    }

    fn unlink(&mut self, place: usize) {
        let Entry { newer, older, .. } = self.entries[place];
        match newer {
            END => self.newest = older,
            _ => self.entries[newer].older = older,
        }
        match older {
            END => self.oldest = newer,
            _ => self.entries[older].newer = newer,
        }
    }

    fn link_newest(&mut self, place: usize) {
        self.entries[place].newer = END;
        self.entries[place].older = self.newest;
        match self.newest {
            END => self.oldest = place,
            newest => self.entries[newest].newer = place,
        }
        self.newest = place;
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    fn location(instance: &str) -> Arc<Location> {
        Arc::new(Location { endpoint: "e".into(), variant: "v".into(), instance: instance.into() })
    }

    #[test]
    fn a_response_is_found_where_it_was_last_stored() {
        let stored = StoredResponses::default();
        stored.remember("resp_1", &location("a"));
        stored.remember("resp_2", &location("b"));
        assert_eq!(stored.locate("resp_1").unwrap().instance.as_str(), "a");
        stored.remember("resp_1", &location("b"));
        assert_eq!(stored.locate("resp_1").unwrap().instance.as_str(), "b");
        assert_eq!(stored.locate("resp_3"), None);
        assert_eq!(stored.len(), 2);
    }

    #[test]
    fn what_was_used_least_recently_is_forgotten_first() {
        let stored = StoredResponses::with_capacity(3);
        for id in ["1", "2", "3"] {
            stored.remember(id, &location(id));
        }
        stored.locate("1");
        stored.remember("4", &location("4"));
        let remembered = ["1", "2", "3", "4"].map(|id| stored.locate(id).is_some());
        assert_eq!(remembered, [true, false, true, true]);
    }

    #[test]
    fn it_behaves_like_a_list_and_never_grows_beyond_its_capacity() {
        let stored = StoredResponses::with_capacity(8);
        let mut model: Vec<u32> = Vec::new();
        let mut step = 1u32;
        for _ in 0..5_000 {
            step = step.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let id = (step >> 8) % 20;
            let found = stored.locate(&id.to_string()).is_some();
            assert_eq!(found, model.contains(&id));
            model.retain(|&known| known != id);
            if found || step.is_multiple_of(2) {
                stored.remember(&id.to_string(), &location("x"));
                model.insert(0, id);
                model.truncate(8);
            }
            assert_eq!(stored.len(), model.len());
        }
    }
}
