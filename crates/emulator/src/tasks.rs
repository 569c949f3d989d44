//! The tasks of one emulator, which all end together with it.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

use tokio::task::JoinSet;

/// Spawns on the thread's runtime. Clones share the tasks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks(Rc<RefCell<JoinSet<()>>>);

impl Tasks {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.0.borrow_mut().spawn_local(task);
    }

    /// Forgets tasks that have ended; never resolves. Whoever awaits other things awaits this beside them.
    pub(crate) async fn reap(&self) -> std::convert::Infallible {
        poll_fn(|context| {
            while let Poll::Ready(Some(_)) = self.0.borrow_mut().poll_join_next(context) {}
            Poll::Pending
        })
        .await
    }

    /// Waits until every task has ended.
    pub(crate) async fn ended(&self) {
        poll_fn(|context| {
            let mut tasks = self.0.borrow_mut();
            loop {
                match tasks.poll_join_next(context) {
                    Poll::Ready(Some(_)) => {}
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
    }

    /// Drops every task where it stands.
    pub(crate) fn abort(&self) {
        self.0.borrow_mut().abort_all();
    }
}

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}
