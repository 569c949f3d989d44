//! What was ordered from providers in this life of the process, and how it stands.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::warn;

use super::rollout::UnitStanding;
use crate::providers::{InstanceOrder, Providers, Reached, Standing};

/// The first pause before an instance that was in service and can't be had any more is ordered again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Orders by their keys.
#[derive(Debug)]
pub(super) struct Ordered {
    providers: Providers,
    wake: Arc<Notify>,
    standing: HashMap<String, One>,
    ending: HashMap<String, JoinHandle<()>>,
    /// When instances that failed are ordered again, and after how many pauses.
    again: HashMap<String, (Instant, u32)>,
}

#[derive(Debug)]
struct One {
    receiver: watch::Receiver<Standing>,
    /// Where it was reached last: it is expected there again, or elsewhere, soon.
    last: Option<Reached>,
}

impl Ordered {
    /// Nothing is ordered; `wake` is told when something changes.
    pub(super) fn new(providers: Providers, wake: Arc<Notify>) -> Ordered {
        let (standing, ending, again) = (HashMap::new(), HashMap::new(), HashMap::new());
        Ordered { providers, wake, standing, ending, again }
    }

    pub(super) fn providers(&self) -> &Providers {
        &self.providers
    }

    /// How a unit stands.
    pub(super) fn standing(&self, key: &str) -> UnitStanding {
        match self.standing.get(key).map(|one| one.receiver.borrow().clone()) {
            Some(Standing::Starting) => UnitStanding::Moving,
            Some(Standing::Running(_)) => UnitStanding::Running,
            Some(Standing::Failed(reason)) => UnitStanding::Failed(reason),
            None if self.ending.contains_key(key) => UnitStanding::Moving,
            None => UnitStanding::Gone,
        }
    }

    /// Where a unit is reached, or was until it began to start again.
    pub(super) fn reached(&self, key: &str) -> Option<&Reached> {
        self.standing.get(key)?.last.as_ref()
    }

    /// Makes what is ordered these: orders what is new, and ends what is not among them.
    pub(super) fn follow(&mut self, wanted: HashMap<String, Option<InstanceOrder>>) {
        self.ending.retain(|_, task| !task.is_finished());
        let unwanted: Vec<_> = self.standing.keys().filter(|key| !wanted.contains_key(*key)).cloned().collect();
        for key in unwanted {
            self.again.remove(&key);
            self.end(key);
        }
        for (key, order) in wanted {
            if let (false, false, Some(order)) =
                (self.standing.contains_key(&key), self.ending.contains_key(&key), order)
            {
                self.order(key, order);
            }
        }
    }

    /// Takes in where instances are reached now.
    pub(super) fn look(&mut self) {
        for one in self.standing.values_mut() {
            if let Standing::Running(reached) = &*one.receiver.borrow() {
                one.last = Some(reached.clone());
            }
        }
    }

    /// Orders those again that were in service, have failed, and have waited long enough.
    pub(super) fn try_again(&mut self, in_service: &HashSet<String>) {
        let now = Instant::now();
        for key in in_service {
            match self.standing(key) {
                UnitStanding::Running => drop(self.again.remove(key)),
                UnitStanding::Failed(reason) => match self.again.get_mut(key) {
                    None => {
                        warn!(%key, "lost, and ordered again: {reason}");
                        self.again.insert(key.clone(), (now + FIRST_PAUSE, 1));
                    }
                    Some((at, pauses)) if *at <= now => {
                        *at = now + LONGEST_PAUSE.min(FIRST_PAUSE * (1 << (*pauses).min(6)));
                        *pauses += 1;
                        self.end(key.clone());
                    }
                    Some(_) => {}
                },
                UnitStanding::Moving | UnitStanding::Gone => {}
            }
        }
    }

    /// Ends what an earlier life of the process left running, but for these.
    pub(super) async fn retain(&self, wanted: &HashSet<String>) {
        self.providers.retain(wanted).await;
    }

    /// Ends everything.
    pub(super) async fn shutdown(&mut self) {
        for (_, task) in self.ending.drain() {
            let _ = task.await;
        }
        self.providers.shutdown().await;
    }

    fn order(&mut self, key: String, order: InstanceOrder) {
        let receiver = self.providers.start(order);
        let (mut changes, wake) = (receiver.clone(), Arc::clone(&self.wake));
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                wake.notify_one();
            }
        });
        // It may have been decided already.
        self.wake.notify_one();
        self.standing.insert(key, One { receiver, last: None });
    }

    fn end(&mut self, key: String) {
        self.standing.remove(&key);
        let (providers, wake, of) = (self.providers.clone(), Arc::clone(&self.wake), key.clone());
        let task = tokio::spawn(async move {
            providers.stop(&of).await;
            // Told by the next look at this task, which has ended by then.
            tokio::spawn(async move { wake.notify_one() });
        });
        self.ending.insert(key, task);
    }
}
