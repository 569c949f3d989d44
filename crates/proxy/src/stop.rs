//! Stopping in phases: nothing new, then the end of what is still under way.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// How far stopping has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// All is served.
    Serving,
    /// No new connections; what is under way is finished, connections close behind it.
    Draining,
    /// What is still under way ends now, with an error that says so.
    Truncating,
    /// All is dropped.
    Over,
}

/// The phase as the connections and requests of one thread see it.
#[derive(Debug)]
pub(crate) struct Stop {
    phase: Cell<Phase>,
    changed: Arc<Notify>,
}

impl Stop {
    /// Serving.
    pub(crate) fn new() -> Stop {
        Stop { phase: Cell::new(Phase::Serving), changed: Arc::new(Notify::new()) }
    }

    /// The present phase.
    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Enters a phase and wakes whoever watches.
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.changed.notify_waiters();
    }

    /// A watch that sees every change from now on.
    pub(crate) fn watch(&self) -> Watch {
        Watch { changed: Arc::clone(&self.changed), next: Box::pin(Arc::clone(&self.changed).notified_owned()) }
    }

    /// Resolves in this phase or a later one.
    pub(crate) async fn reached(&self, phase: Phase) {
        let mut watch = self.watch();
        std::future::poll_fn(
            |context| if watch.poll(context, self) >= phase { Poll::Ready(()) } else { Poll::Pending },
        )
        .await;
    }
}

/// Wakes its task when the phase changes.
#[derive(Debug)]
pub(crate) struct Watch {
    changed: Arc<Notify>,
    next: Pin<Box<OwnedNotified>>,
}

impl Watch {
    /// The present phase; the task is woken when it changes.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, stop: &Stop) -> Phase {
        while self.next.as_mut().poll(context).is_ready() {
            self.next.set(Arc::clone(&self.changed).notified_owned());
        }
        stop.phase()
    }
}
