//! Which handles on series are alive, so that equal labels share one handle and the last one to go ends the series.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::labels::Labels;

/// The handles of one kind.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    alive: Mutex<HashMap<Labels, Weak<T>>>,
}

impl<T> Handles<T> {
    /// The handle for these labels: the one that is alive, else a new one.
    pub(crate) fn handle(&self, scope: Labels, make: impl FnOnce(Labels) -> T) -> Arc<T> {
        let mut alive = self.alive.lock();
        if let Some(handle) = alive.get(&scope).and_then(Weak::upgrade) {
            return handle;
        }
        let handle = Arc::new(make(scope.clone()));
        alive.insert(scope, Arc::downgrade(&handle));
        handle
    }

    /// To be called while `handle` is dropped. Runs `end`, unless a handle for the same labels was made since: then the
    /// series are that one's.
    pub(crate) fn end(&self, scope: &Labels, handle: &T, end: impl FnOnce()) {
        let mut alive = self.alive.lock();
        if alive.get(scope).is_some_and(|weak| std::ptr::eq(weak.as_ptr(), handle)) {
            alive.remove(scope);
            end();
        }
    }
}

impl<T> Default for Handles<T> {
    fn default() -> Handles<T> {
        Handles { alive: Mutex::default() }
    }
}
