//! Idle connections to instances, kept by the thread that opened them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use http::HeaderValue;
use isotherm_core::Time;

use super::connection::Connection;

/// The most idle connections that one thread keeps to one instance.
const MOST_IDLE: usize = 256;

/// The idle connections of one thread, by where they lead to: an authority, or what stands for TLS to one.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    homes: RefCell<HashMap<HeaderValue, Home>>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Time,
}

/// The idle connections to one instance: where one is taken from, and returns to after its response.
#[derive(Debug, Clone, Default)]
pub(crate) struct Home(Rc<RefCell<Vec<Idle>>>);

impl Pool {
    /// The connections to this instance.
    pub(crate) fn home(&self, key: &HeaderValue) -> Home {
        let mut homes = self.homes.borrow_mut();
        match homes.get(key) {
            Some(home) => home.clone(),
            None => homes.entry(key.clone()).or_default().clone(),
        }
    }

    /// Closes what was idle for too long or was closed by the other side.
    pub(crate) fn sweep(&self, now: Time, longest_idle: Duration) {
        self.homes.borrow_mut().retain(|_, home| {
            let mut connections = home.0.borrow_mut();
            connections.retain_mut(|idle| now.since(idle.since) < longest_idle && idle.connection.is_idle());
            !connections.is_empty() || Rc::strong_count(&home.0) > 1
        });
    }

    /// Closes all.
    pub(crate) fn clear(&self) {
        for (_, home) in self.homes.borrow_mut().drain() {
            home.0.borrow_mut().clear();
        }
    }
}

impl Home {
    /// The connection that was used last and is still good; `None`: one has to be opened.
    pub(crate) fn take(&self, now: Time, longest_idle: Duration) -> Option<Connection> {
        let mut connections = self.0.borrow_mut();
        while let Some(Idle { mut connection, since }) = connections.pop() {
            if now.since(since) < longest_idle && connection.is_idle() {
                return Some(connection);
            }
        }
        None
    }

    /// Takes a connection back after a response that left it in order.
    pub(crate) fn give(&self, mut connection: Connection, now: Time) {
        connection.mark_reused();
        let mut connections = self.0.borrow_mut();
        if connections.len() < MOST_IDLE {
            connections.push(Idle { connection, since: now });
        }
    }
}
