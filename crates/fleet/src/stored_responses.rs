//! Which instance keeps which stored response, so that `previous_response_id` and `/v1/responses/{id}` find it again.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Location;
use crate::latest::Latest;

/// How many responses are remembered when nothing else is said.
const DEFAULT_CAPACITY: usize = 100_000;

/// Remembers where responses are stored: the latest ones, within a bound.
///
/// Ids are kept as hashes under a key of this process: about 60 bytes each, no text, and nobody can make two ids
/// collide. What was used least recently is forgotten first. Shared by all threads.
#[derive(Debug)]
pub struct StoredResponses {
    hasher: RandomState,
    remembered: Mutex<Latest<Arc<Location>>>,
}

impl Default for StoredResponses {
    fn default() -> StoredResponses {
        StoredResponses::with_capacity(DEFAULT_CAPACITY)
    }
}

impl StoredResponses {
    /// Remembers at most `capacity` responses, and at least one.
    pub fn with_capacity(capacity: usize) -> StoredResponses {
        StoredResponses { hasher: RandomState::new(), remembered: Mutex::new(Latest::with_capacity(capacity)) }
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
        self.remembered.lock().len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
}
