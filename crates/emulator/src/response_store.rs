//! Stored responses of `/v1/responses`, within a budget of bytes; the oldest go first.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use serde_json::Value;
use tokio::sync::Notify;

use crate::conversation::Conversation;

/// What is known of one response.
#[derive(Debug)]
pub(crate) struct StoredResponse {
    /// As `GET` returns it.
    pub(crate) body: Value,
    /// What a next response builds on; absent until the response is complete.
    pub(crate) conversation: Option<Conversation>,
    /// Ends the generation of a response made in the background; absent once that has ended.
    pub(crate) cancel: Option<Rc<Notify>>,
}

impl StoredResponse {
    fn bytes(&self) -> usize {
        self.conversation.as_ref().map_or(0, Conversation::bytes) + self.body.to_string().len()
    }
}

/// Responses by id.
#[derive(Debug)]
pub(crate) struct ResponseStore {
    budget: usize,
    used: usize,
    entries: HashMap<String, (StoredResponse, usize)>,
    /// Ids in the order of their storing; may name removed ones.
    order: VecDeque<String>,
}

impl ResponseStore {
    pub(crate) fn new(budget: usize) -> Self {
        Self { budget, used: 0, entries: HashMap::new(), order: VecDeque::new() }
    }

    /// Stores or replaces a response, and drops the oldest ones beyond the budget.
    pub(crate) fn put(&mut self, id: &str, response: StoredResponse) {
        let bytes = response.bytes();
        if let Some((_, replaced)) = self.entries.insert(id.to_owned(), (response, bytes)) {
            self.used -= replaced;
        } else {
            self.order.push_back(id.to_owned());
        }
        self.used += bytes;
        while self.used > self.budget
            && let Some(oldest) = self.order.pop_front()
        {
            self.remove(&oldest);
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&StoredResponse> {
        self.entries.get(id).map(|(response, _)| response)
    }

    /// Forgets a response, and ends its generation.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        let Some((response, bytes)) = self.entries.remove(id) else { return false };
        self.used -= bytes;
        if self.order.len() > 2 * self.entries.len() + 16 {
            self.order.retain(|id| self.entries.contains_key(id));
        }
        if let Some(cancel) = response.cancel {
            cancel.notify_one();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn response(bytes: usize) -> StoredResponse {
        StoredResponse { body: json!("x".repeat(bytes - 2)), conversation: None, cancel: None }
    }

    #[test]
    fn the_oldest_go_beyond_the_budget() {
        let mut store = ResponseStore::new(100);
        for id in ["a", "b", "c"] {
            store.put(id, response(40));
        }
        assert!(store.get("a").is_none());
        assert!(store.get("b").is_some() && store.get("c").is_some());
        store.put("c", response(90));
        assert!(store.get("b").is_none());
        assert_eq!(store.used, 90);
    }

    #[test]
    fn a_removed_response_is_gone_and_its_generation_told() {
        let mut store = ResponseStore::new(100);
        let cancel = Rc::new(Notify::new());
        store.put("a", StoredResponse { cancel: Some(Rc::clone(&cancel)), ..response(40) });
        assert!(store.remove("a"));
        assert!(!store.remove("a"));
        assert_eq!(store.used, 0);
        let told = std::pin::pin!(cancel.notified()).as_mut().enable();
        assert!(told);
    }

    #[test]
    fn the_order_of_removed_responses_does_not_pile_up() {
        let mut store = ResponseStore::new(1_000_000);
        for number in 0..1_000 {
            let id = number.to_string();
            store.put(&id, response(10));
            store.remove(&id);
        }
        assert!(store.order.len() <= 17);
    }
}
