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
    idle: RefCell<HashMap<HeaderValue, Vec<Idle>>>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Time,
}

/// Where a connection returns to after its response.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    pool: Rc<Pool>,
    key: HeaderValue,
}

impl Pool {
    /// The connection to this instance that was used last and is still good; `None`: one has to be opened.
    pub(crate) fn take(&self, key: &HeaderValue, now: Time, longest_idle: Duration) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        let connections = idle.get_mut(key)?;
        while let Some(Idle { mut connection, since }) = connections.pop() {
            if now.since(since) < longest_idle && connection.is_idle() {
                return Some(connection);
            }
        }
        None
    }

    /// Where a connection to this instance returns to.
    pub(crate) fn home(self: &Rc<Self>, key: &HeaderValue) -> Home {
        Home { pool: Rc::clone(self), key: key.clone() }
    }

    /// Closes what was idle for too long or was closed by the other side.
    pub(crate) fn sweep(&self, now: Time, longest_idle: Duration) {
        self.idle.borrow_mut().retain(|_, connections| {
            connections.retain_mut(|idle| now.since(idle.since) < longest_idle && idle.connection.is_idle());
            !connections.is_empty()
        });
    }

    /// Closes all.
    pub(crate) fn clear(&self) {
        self.idle.borrow_mut().clear();
    }
}

impl Home {
    /// Takes a connection back after a response that left it in order.
    pub(crate) fn give(&self, mut connection: Connection, now: Time) {
        connection.mark_reused();
        let mut idle = self.pool.idle.borrow_mut();
        let connections = match idle.get_mut(&self.key) {
            Some(connections) => connections,
            None => idle.entry(self.key.clone()).or_default(),
        };
        if connections.len() < MOST_IDLE {
            connections.push(Idle { connection, since: now });
        }
    }
}
